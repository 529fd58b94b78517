package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/weir-dev/weir/controller/leases"
	"github.com/weir-dev/weir/internal/tools/release"
)

// election returns the leader's Lease; nil if there is none.
func (f *collectorFlags) election(config *rest.Config, log logr.Logger) (*leases.Lease, error) {
	if !f.leaderElect || f.mode == modeShadow {
		return nil, nil
	}
	namespace := cmp.Or(f.leaseNamespace(), podNamespace())
	if namespace == "" {
		return nil, errors.New("--leader-elect needs --leader-elect-namespace here: the pod has no ServiceAccount token " +
			"that tells its namespace")
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find a name to hold the leader's Lease by: %w", err)
	}
	// Its client has a timeout, so that a request that hangs does not lose the Lease.
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, release.LeaseName,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, rest.CopyConfig(config),
		f.renewFor())
	if err != nil {
		return nil, fmt.Errorf("make a client for the leader's Lease: %w", err)
	}
	return leases.New(lock, f.leaseDuration/15, log), nil
}

// renewFor returns for how long a leader tries to renew its Lease before it ends. It is less than
// others wait.
func (f *collectorFlags) renewFor() time.Duration { return f.leaseDuration * 2 / 3 }
