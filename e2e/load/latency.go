package load

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// askPause is what a client rests between an answer and its next request: one that asks all the
// time would be load by itself.
const askPause = 5 * time.Millisecond

// Latency is how long an answer took that was asked for at a time.
type Latency struct {
	At   time.Time
	Took time.Duration
}

// Latencies asks for an object again and again, until stop is called, and returns how long each
// answer took.
func Latencies(ctx context.Context, cfg *rest.Config, p *Population) (stop func() ([]Latency, error)) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return func() ([]Latency, error) { return nil, err }
	}
	in := client.Resource(p.Layout.Kind.GVR()).Namespace(p.Namespace)
	return timed(ctx, func(ctx context.Context) error {
		_, err := in.Get(ctx, p.Owner.Name, metav1.GetOptions{})
		return err
	})
}

// timed asks again and again, until stop is called or an answer is an error.
func timed(ctx context.Context, ask func(context.Context) error) (stop func() ([]Latency, error)) {
	ctx, cancel := context.WithCancel(ctx)
	var all []Latency
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			err := ask(ctx)
			if ctx.Err() != nil { // it was cut short
				return
			}
			if err != nil {
				failed = errors.Join(failed, err)
				return
			}
			all = append(all, Latency{began, time.Since(began)})
			if Pause(ctx, askPause) != nil {
				return
			}
		}
	})
	return func() ([]Latency, error) { cancel(); wg.Wait(); return all, failed }
}

// Within are the latencies of what was asked for from a time to another.
func Within(all []Latency, from, to time.Time) []time.Duration {
	var v []time.Duration
	for _, l := range all {
		if !l.At.Before(from) && l.At.Before(to) {
			v = append(v, l.Took)
		}
	}
	return v
}
