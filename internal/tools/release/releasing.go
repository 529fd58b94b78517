package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const (
	// releaseLists is how many kinds are listed at once.
	releaseLists = 8
	// releasePasses is how many times everything is looked at while there is still something to
	// release: API servers notice a deleted webhook configuration one after the other.
	releasePasses = 4
	// releaseFailures is how many objects of a kind are named that could not be released.
	releaseFailures = 1000
	// releasePause is the time between two passes: what failed may work a moment later.
	releasePause = time.Second
	reportEvery  = 2 * time.Second
)

// releasing is a Release under way.
type releasing struct {
	*Release
	discovery discovery.DiscoveryInterface
	lister    *finalizers.Lister
	writer    *finalizers.Writer
	deleted   time.Time // when the webhook configurations were deleted

	mu       sync.Mutex
	result   Released
	unheard  []string // group versions that do not answer
	failures map[schema.GroupResource]*releaseFailed
	marked   map[schema.GroupResource][]string // objects that keep the annotation, in the last pass over a kind
}

// releaseFailed is what the last pass over a kind could not do.
type releaseFailed struct {
	objects int64
	why     []string // for the first of them
	list    error    // why not all objects were seen
}

// run makes passes until there is nothing to release. If webhook configurations were deleted, it
// makes more once no request is under way that had got the finalizer from them.
func (w *releasing) run(ctx context.Context) error {
	resources, unheard, err := kinds.Discover(w.discovery, nil, nil)
	if resources == nil {
		return err // an error about single groups is in unheard
	}
	w.unheard, w.failures = unheard, map[schema.GroupResource]*releaseFailed{}
	w.marked = map[schema.GroupResource][]string{}
	resources = slices.DeleteFunc(resources, func(r graph.Resource) bool { return !r.Listable || !r.Deletable })
	w.result.Kinds = len(resources)
	if err := w.look(ctx, resources, 1); err != nil || w.DryRun || w.result.WebhooksBefore == 0 || w.Window == 0 {
		return err
	}
	select {
	case <-time.After(w.Window - time.Since(w.deleted)):
	case <-ctx.Done():
		return interrupted(ctx)
	}
	return w.look(ctx, resources, 1+releasePasses)
}

// look makes passes, beginning with number first, over the kinds in which the pass before found
// something, until there is nothing.
func (w *releasing) look(ctx context.Context, resources []graph.Resource, first int) error {
	for pass := first; ; pass++ {
		some, err := w.pass(ctx, resources, pass)
		if err != nil {
			return err
		}
		switch {
		case w.DryRun:
			return nil
		case pass == first+releasePasses-1:
			w.putBack(some)
			return nil
		case pass > 1 || w.result.WebhooksBefore == 0:
			resources = some
		}
		if len(resources) == 0 {
			return nil
		}
		select {
		case <-time.After(releasePause):
		case <-ctx.Done():
			return interrupted(ctx)
		}
	}
}

// pass looks at some kinds once, and returns those in which there was something to release.
func (w *releasing) pass(ctx context.Context, resources []graph.Resource, n int) (some []graph.Resource, err error) {
	var lists, patches errgroup.Group
	lists.SetLimit(releaseLists)
	patches.SetLimit(request.DefaultConcurrency)
	for _, res := range resources {
		lists.Go(func() error {
			k := &kindPass{releasing: w, gvr: res.GroupResource().WithVersion(res.Version), pass: n}
			w.clear(res.GroupResource())
			err := w.lister.Each(ctx, k.gvr, metav1.NamespaceAll, "", false, func(_ map[string]any, m *metav1.ObjectMeta) error {
				k.object(ctx, m, &patches)
				return ctx.Err()
			})
			w.looked(n)
			if err != nil && ctx.Err() == nil {
				w.unread(k.gvr.GroupResource(), err)
			}
			if k.hits > 0 || err != nil {
				w.mu.Lock()
				some = append(some, res)
				w.mu.Unlock()
			}
			return nil
		})
	}
	_ = errors.Join(lists.Wait(), patches.Wait()) // failures has the errors
	if ctx.Err() != nil {
		return nil, interrupted(ctx)
	}
	slices.SortFunc(some, kinds.Compare)
	return some, nil
}

func interrupted(ctx context.Context) error {
	return fmt.Errorf("interrupted: %w. What was released stays released: run it again to go on", context.Cause(ctx))
}

// kindPass is one pass over one kind.
type kindPass struct {
	*releasing
	gvr  schema.GroupVersionResource
	pass int
	hits int // objects that carry the finalizer
}

// object releases an object if it carries the finalizer or the annotation. The patch runs in
// patches.
func (k *kindPass) object(ctx context.Context, m *metav1.ObjectMeta, patches *errgroup.Group) {
	if k.pass == 1 {
		k.mu.Lock()
		k.result.Seen++
		k.mu.Unlock()
	}
	gr := k.gvr.GroupResource()
	_, marked := m.Annotations[v1beta1.ArmedAtAnnotation]
	carries := len(policies.OwnFinalizers(gr, m.Finalizers)) > 0
	switch {
	case carries:
		k.hits++
	case !marked || policies.IsPermission(gr):
		return
	}
	if k.DryRun {
		k.released(k.gvr, m)
		return
	}
	patches.Go(func() error {
		switch result, err := k.writer.Take(ctx, k.gvr, m); {
		case err != nil && ctx.Err() == nil && carries:
			k.failed(gr, err)
		case err != nil && ctx.Err() == nil:
			k.stays(gr, m, err)
		case result == finalizers.Done:
			k.released(k.gvr, m)
		}
		return nil
	})
}

func (w *releasing) released(gvr schema.GroupVersionResource, m *metav1.ObjectMeta) {
	what := graph.Ref{Kind: gvr.GroupResource(), Namespace: m.Namespace, Name: m.Name}.String()
	if m.DeletionTimestamp != nil {
		what += " (terminating)"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.result.Released++
	w.found(what)
}

func (w *releasing) looked(pass int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pass == 1 {
		w.result.Looked++
	}
}

// clear drops the failures of a kind before its next pass.
func (w *releasing) clear(gr schema.GroupResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.marked, gr)
	if f := w.failures[gr]; f != nil {
		w.result.Failed -= f.objects
		delete(w.failures, gr)
	}
}

// failed records an object that could not be released.
func (w *releasing) failed(gr schema.GroupResource, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.failureLocked(gr)
	f.objects++
	w.result.Failed++
	if len(f.why) < releaseFailures {
		f.why = append(f.why, err.Error())
	}
}

// stays records an object that keeps the annotation without the finalizer. Any user who may edit an
// object can write it where Weir may not remove it. It holds nothing, so this is no failure.
func (w *releasing) stays(gr schema.GroupResource, m *metav1.ObjectMeta, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.marked[gr]) < releaseFailures {
		w.marked[gr] = append(w.marked[gr], fmt.Sprintf("%s keeps the annotation %s, which holds nothing: %v",
			graph.Ref{Kind: gr, Namespace: m.Namespace, Name: m.Name}, v1beta1.ArmedAtAnnotation, err))
	}
}

// unread records a kind of which not all objects were released; which ones may not be known.
func (w *releasing) unread(gr schema.GroupResource, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failureLocked(gr).list = err
}

func (w *releasing) failureLocked(gr schema.GroupResource) *releaseFailed {
	f := w.failures[gr]
	if f == nil {
		f = &releaseFailed{}
		w.failures[gr] = f
	}
	return f
}

// putBack records the kinds in which every pass has found something to release.
func (w *releasing) putBack(kinds []graph.Resource) {
	for _, k := range kinds {
		if w.failures[k.GroupResource()] == nil {
			w.unread(k.GroupResource(), fmt.Errorf("release %s: their finalizer was taken off %d times, and something puts "+
				"it back: look for a weir that is still running", k.GroupResource(), releasePasses))
		}
	}
}

// report calls Progress every reportEvery until stop is called.
func (w *releasing) report() (stop func()) {
	if w.Progress == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(reportEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.mu.Lock()
				now := w.result
				w.mu.Unlock()
				w.Progress(now)
			case <-done:
				return
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// outcome returns the result with all failures.
func (w *releasing) outcome() Released {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.result
	for gr, f := range w.failures {
		out.Failures = append(out.Failures, f.why...)
		if f.list != nil {
			out.Failures = append(out.Failures, f.list.Error())
		}
		if more := f.objects - int64(len(f.why)); more > 0 {
			out.Failures = append(out.Failures, fmt.Sprintf("and %d more %s", more, gr))
		}
	}
	for _, gv := range w.unheard {
		out.Failures = append(out.Failures,
			fmt.Sprintf("discover %s: it does not answer, so what it serves was not looked at", gv))
	}
	for _, of := range w.marked {
		out.Marked = append(out.Marked, of...)
	}
	slices.Sort(out.Failures)
	slices.Sort(out.Marked)
	return out
}
