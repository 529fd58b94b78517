package cmd

import (
	"context"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
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

// weirFlags are the flags of every process with policies.
type weirFlags struct {
	clusterFlags
	processFlags
	policyFlags
	targetFlags
}

func (f *weirFlags) register(fs *pflag.FlagSet) {
	f.clusterFlags.register(fs)
	f.processFlags.register(fs)
	f.policyFlags.register(fs)
	f.targetFlags.register(fs)
}

// begin finds the API server, waits until it answers, and prepares the policies. The caller has
// checked the flags.
func (f *weirFlags) begin(ctx context.Context) (*begun, error) {
	b, err := beginWithoutPolicies(ctx, &f.clusterFlags, &f.processFlags)
	if err != nil {
		return nil, err
	}
	b.state, err = f.state(ctx, b.config, f.at().Namespace, b.log)
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
