package cmd

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/policies/live"
)

// begun is what every process of Weir has at its beginning.
type begun struct {
	config *rest.Config
	state  *live.State
	log    logr.Logger
}

// begin finds the API server, makes sure that it answers, and prepares the policies. The flags have been checked.
func begin(ctx context.Context, cluster *clusterFlags, process *processFlags, policy *policyFlags, target *targetFlags) (*begun, error) {
	log := process.logger()
	config, err := cluster.restConfig()
	if err != nil {
		return nil, err
	}
	if err := reach(ctx, config); err != nil {
		return nil, err
	}
	state, err := policy.state(ctx, config, target, log)
	if err != nil {
		return nil, err
	}
	return &begun{config, state, log}, nil
}
