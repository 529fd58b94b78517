package cmd

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/weir-dev/weir/controller/events"
)

// webhookEvents records the Events of the webhook, about policies that could not be judged. tell
// queues an Event, or drops it if the queue is full. run sends the queue until its context ends. A
// repeated Event is counted in the first.
func webhookEvents(config *rest.Config) (
	tell func(policy map[string]any, message string), run func(context.Context) error, err error,
) {
	config = rest.CopyConfig(config)
	config.RateLimiter = nil // reviews have a rate limit of their own
	core, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("make an events client: %w", err)
	}
	queue := record.NewBroadcaster()
	reporter := events.New(queue.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "weir"}), nil)
	tell = func(policy map[string]any, message string) {
		reporter.Policy(policy, corev1.EventTypeWarning, events.ReasonPolicyError, message)
	}
	run = func(ctx context.Context) error {
		queue.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: core.Events("")})
		<-ctx.Done()
		queue.Shutdown()
		return nil
	}
	return tell, run, nil
}
