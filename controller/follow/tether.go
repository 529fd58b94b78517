package follow

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// tetherFor is how long a tether is asked for.
const tetherFor = 10 * time.Minute

// tether is a watch that is there to end. Whoever wants to know of each loss of contact must hold a
// connection all the time: an API server that is told to leave ends its watches, goes on answering
// for some seconds, and is gone then, while those who watch wait for their next try.
type tether struct {
	namespaces metadata.ResourceInterface
	lost       func() // is called when it has ended
	held       atomic.Bool
	wg         sync.WaitGroup
}

// hold sees to it that there is one, until ctx ends.
func (t *tether) hold(ctx context.Context) error {
	if t.held.Load() {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(probeTimeout, cancel)
	w, err := t.namespaces.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + metav1.NamespaceSystem, TimeoutSeconds: new(int64(tetherFor / time.Second))})
	if err != nil || !late.Stop() {
		cancel()
		if err == nil {
			w.Stop()
			err = context.DeadlineExceeded
		}
		return err
	}
	t.held.Store(true)
	t.wg.Go(func() {
		defer cancel()
		for range w.ResultChan() {
		}
		t.held.Store(false)
		t.lost()
	})
	return nil
}
