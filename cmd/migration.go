package cmd

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/weir-dev/weir/controller/beside"
)

// migration is the Lease that kube-controller-manager waits for, too; nil without the flag.
func (f *collectorFlags) migration(b *begun) (*beside.Migration, error) {
	if f.migrationLease == "" {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find a name for the migration Lease: %w", err)
	}
	namespace, name, _ := strings.Cut(f.migrationLease, "/") // checked before
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, name,
		resourcelock.ResourceLockConfig{Identity: "weir_" + host + "_" + string(uuid.NewUUID())}, rest.CopyConfig(b.config), f.leaseDuration*2/3)
	if err != nil {
		return nil, fmt.Errorf("make a client for the migration Lease: %w", err)
	}
	return beside.NewMigration(lock, f.leaseDuration, b.log), nil
}
