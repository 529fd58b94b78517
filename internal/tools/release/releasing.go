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
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/metadata"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
)

const (
	// releaseLists is how many kinds are listed at once.
	releaseLists = 8
	// releasePasses is how many times everything is looked at while there is still something to
	// release: what failed may work a moment later.
	releasePasses = 4
	// releaseFailures is how many objects are named that could not be released.
	releaseFailures = 1000
	releasePause    = time.Second // between two passes
	reportEvery     = 2 * time.Second
)

// releasing is a Release under way.
type releasing struct {
	*Release
	discovery discovery.DiscoveryInterface
	leases    typedcoordinationv1.LeasesGetter
	objects   metadata.Interface
	lister    *finalizers.Lister
	writer    *finalizers.Writer
	unheard   []string // group versions that do not answer

	mu       sync.Mutex
	passes   int
	result   Released
	reported time.Time
}

// run makes passes until there is nothing to release. If webhook configurations were deleted, it
// makes more once no request is under way that had got the finalizer from them.
func (w *releasing) run(ctx context.Context, deleted time.Time) error {
	resources, unheard, err := kinds.Discover(w.discovery, nil, nil)
	if resources == nil {
		return err // an error about single groups is in unheard
	}
	w.unheard = unheard
	resources = slices.DeleteFunc(resources, func(r graph.Resource) bool { return !r.Listable || !r.Deletable })
	w.result.Kinds = len(resources)
	if err := w.look(ctx, resources); err != nil || w.DryRun || w.result.WebhooksBefore == 0 || w.Window == 0 {
		return err
	}
	if err := pause(ctx, w.Window-time.Since(deleted)); err != nil {
		return err
	}
	return w.look(ctx, resources)
}

// look makes passes over the kinds in which the pass before found something, until there is
// nothing.
func (w *releasing) look(ctx context.Context, resources []graph.Resource) error {
	for pass := 1; len(resources) > 0; pass++ {
		some, err := w.pass(ctx, resources, pass == releasePasses)
		if err != nil || w.DryRun || pass == releasePasses {
			return err
		}
		if resources = some; len(resources) > 0 {
			if err := pause(ctx, releasePause); err != nil {
				return err
			}
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return interrupted(ctx)
	}
}

func interrupted(ctx context.Context) error {
	return fmt.Errorf("interrupted: %w. What was released stays released: run it again to go on", context.Cause(ctx))
}

// pass looks at some kinds once, and returns those in which there was something to release. The
// failures of the pass before are tried again, and so are no failures any more.
func (w *releasing) pass(ctx context.Context, resources []graph.Resource, last bool) ([]graph.Resource, error) {
	w.passes++
	w.result.Failed, w.result.Failures = 0, nil
	var lists, patches errgroup.Group
	lists.SetLimit(releaseLists)
	patches.SetLimit(request.DefaultConcurrency)
	looked := make([]kindPass, len(resources))
	for i, res := range resources {
		k := &looked[i]
		*k = kindPass{releasing: w, gvr: res.GroupResource().WithVersion(res.Version)}
		lists.Go(func() error {
			k.list(ctx, &patches)
			return nil
		})
	}
	_ = errors.Join(lists.Wait(), patches.Wait()) // the result has the errors
	if ctx.Err() != nil {
		return nil, interrupted(ctx)
	}
	var some []graph.Resource
	for i := range looked {
		k := &looked[i]
		if k.hits > 0 || k.failed {
			some = append(some, resources[i])
		}
		if last && !k.failed && k.hits > 0 && !w.DryRun {
			w.fail(0, fmt.Errorf("release %s: their finalizer was taken off %d times, and something puts it back: look "+
				"for a weir that is still running", k.gvr.GroupResource(), releasePasses))
		}
	}
	return some, nil
}

// kindPass is one pass over one kind.
type kindPass struct {
	*releasing
	gvr    schema.GroupVersionResource
	hits   int  // objects that carry the finalizer
	failed bool // guarded by mu
}

// list lists a kind, and releases the objects that carry the finalizer. The patches run in patches.
func (k *kindPass) list(ctx context.Context, patches *errgroup.Group) {
	seen := 0
	err := k.lister.Each(ctx, k.gvr, metav1.NamespaceAll, "", false, func(_ map[string]any, m *metav1.ObjectMeta) error {
		seen++
		switch {
		case len(policies.OwnFinalizers(k.gvr.GroupResource(), m.Finalizers)) == 0:
		case k.DryRun:
			k.released(m)
		default:
			k.hits++
			patches.Go(func() error {
				switch result, err := k.writer.Take(ctx, k.gvr, m); {
				case err != nil:
					k.fails(ctx, 1, err)
				case result == finalizers.Done:
					k.released(m)
				}
				return nil
			})
		}
		return ctx.Err()
	})
	if err != nil { // which objects were not seen is not known
		k.fails(ctx, 0, err)
	}
	k.looked(seen)
}

// looked counts a kind and its objects in the first pass, and reports now and then.
func (w *releasing) looked(seen int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.passes == 1 {
		w.result.Looked++
		w.result.Seen += int64(seen)
	}
	if w.Progress != nil && time.Since(w.reported) >= reportEvery {
		w.reported = time.Now()
		w.Progress(w.result)
	}
}

func (k *kindPass) released(m *metav1.ObjectMeta) {
	what := graph.Ref{Kind: k.gvr.GroupResource(), Namespace: m.Namespace, Name: m.Name}.String()
	if m.DeletionTimestamp != nil {
		what += " (terminating)"
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.result.Released++
	k.found(what)
}

// fails records a failure about so many objects of a kind, unless it comes of an interruption.
func (k *kindPass) fails(ctx context.Context, objects int64, err error) {
	if ctx.Err() != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed = true
	k.fail(objects, err)
}

// fail records an error. It is called with the lock, or when nothing runs.
func (w *releasing) fail(objects int64, err error) {
	w.result.Failed += objects
	if objects == 0 || w.result.Failed <= releaseFailures {
		w.result.Failures = append(w.result.Failures, err.Error())
	}
}

// outcome returns the result, with the failure to remove what is Weir's own.
func (w *releasing) outcome(own error) Released {
	if own != nil {
		w.fail(0, own)
	}
	if more := w.result.Failed - releaseFailures; more > 0 {
		w.fail(0, fmt.Errorf("and %d more objects", more))
	}
	for _, gv := range w.unheard {
		w.fail(0, fmt.Errorf("discover %s: it does not answer, so what it serves was not looked at", gv))
	}
	slices.Sort(w.result.Failures)
	return w.result
}
