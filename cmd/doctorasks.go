package cmd

import (
	"context"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/enforce"
)

// An API server takes seconds to read webhook configurations, and the controller as long to write
// them.
const (
	askFor   = 30 * time.Second
	askEvery = time.Second
)

// runAsked prints whether the API server asks the webhook, and fails if not. It needs one right: to
// delete the Lease weir-canary.
func runAsked(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	config = rest.CopyConfig(config)
	config.Timeout = doctorTimeout
	client, err := typedcoordinationv1.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for Leases: %w", err)
	}
	status, message := asked(ctx, client.Leases(namespace))
	if status != metav1.ConditionTrue {
		return fmt.Errorf("policies are not known to be enforced: %s", message)
	}
	_, err = fmt.Fprintf(out, "ok  webhook  %s\n", message)
	return err
}

// asked retries until the API server asks the webhook, or the time is up.
func asked(ctx context.Context, leases typedcoordinationv1.LeaseInterface) (metav1.ConditionStatus, string) {
	for began := time.Now(); ; {
		status, message := enforce.Asked(ctx, leases)
		if status == metav1.ConditionTrue || time.Since(began) > askFor {
			return status, message
		}
		select {
		case <-ctx.Done():
			return status, message
		case <-time.After(askEvery):
		}
	}
}
