package cmd

import (
	"context"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/leases"
	"github.com/weir-dev/weir/policies/live"
)

// begun is what every process of Weir begins with.
type begun struct {
	config *rest.Config
	state  *live.State
	log    logr.Logger
	// elected is the leader's Lease; nil if there is no other process to wait for.
	elected *leases.Lease
}

// begin finds the API server, waits until it answers, and prepares the policies. The caller has
// checked the flags.
func begin(
	ctx context.Context, cluster *clusterFlags, process *processFlags, policy *policyFlags, target *targetFlags,
) (*begun, error) {
	b, err := beginWithoutPolicies(ctx, cluster, process)
	if err != nil {
		return nil, err
	}
	b.state, err = policy.state(ctx, b.config, target, b.log)
	return b, err
}

// beginWithoutPolicies is begin for a process that enforces no policies.
func beginWithoutPolicies(ctx context.Context, cluster *clusterFlags, process *processFlags) (*begun, error) {
	b := &begun{log: process.logger()}
	boundMemory(b.log, memlimit.FromCgroup)
	var err error
	if b.config, err = cluster.restConfig(); err != nil {
		return nil, err
	}
	info, err := reach(ctx, b.config)
	if err != nil {
		return b, err
	}
	b.log.Info("the API server answers", "kubernetes", info.GitVersion)
	return b, nil
}
