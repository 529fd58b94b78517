package enforce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const (
	// atOnce is how many objects back-fill changes at the same time: few, since clients may wait
	// behind these requests, and enough to finish in minutes.
	atOnce = 8
	// tooLate is how slow an answer is that gives other kinds their turn, after a slice of time.
	tooLate, slice = time.Second, 10 * time.Second
	// showEvery is after how many changes progress is published.
	showEvery = 100
)

var errSlow = errors.New("answers take longer than a second: other kinds have their turn")

// look is one look at the objects of a kind.
type look struct {
	*pass // nil when it is over
	set   *policies.Set
	k     graph.KindStats
	kind  schema.GroupVersionKind
	gvr   schema.GroupVersionResource
	how   policies.Look
	// carrying holds the objects that carry the finalizer and were not judged yet.
	carrying map[types.UID]graph.View
	began    time.Time
	changes  uint64 // the graph's count of changes of the kind at that time
	followed bool

	mu      sync.Mutex
	found   map[policies.PolicyKey]tally
	refused int64 // failed changes
	again   bool  // not everything was seen
	failure failure
	waits   string
}

func (p *pass) newLook(k graph.KindStats, carrying map[types.UID]graph.View) *look {
	kind := k.GroupResource()
	l := &look{
		pass: p, set: p.set, k: k, gvr: kind.WithVersion(k.Version),
		kind: schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind},
		how:  p.set.LookAt(kind), carrying: carrying, began: time.Now(), found: map[policies.PolicyKey]tally{},
	}
	l.changes, l.followed = p.store.Changes(kind)
	return l
}

// due reports whether the kind is to be looked at: its policies have changed, something failed, or
// enough time has passed.
func (l *look) due(last *look) bool {
	kind, age := l.k.GroupResource(), l.began.Sub(last.began)
	switch {
	case last.again || age >= backFillAll || !l.set.SameLook(kind, last.set), !l.how.Adds && len(l.carrying) > 0:
		return true
	case l.how.Adds && age >= backFillEvery:
		return !l.followed || l.changes != last.changes
	}
	return false
}

// take looks at a kind, and returns when every object is in line or cannot be.
func (l *look) take(ctx context.Context) {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	err := l.objects(within, group)
	if busy := group.Wait(); busy != nil {
		err = busy
		l.waits = cmp.Or(l.requests.Limiter.Failing(l.k.GroupResource()),
			fmt.Sprintf("requests about %s: %v", l.k.GroupResource(), busy))
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	l.again = true
	for _, key := range l.how.Some {
		l.count(key, tally{unknown: true})
	}
	if l.how.Adds || len(l.carrying) > 0 {
		l.fail(err)
		return
	}
	// Counting alone holds nothing up.
	l.log.V(1).Info("cannot count what policies are about", "kind", l.gvr.GroupResource().String(), "err", err.Error())
}

// objects looks at the objects that policies may be about, and takes the finalizer off those that
// carry it although no policy selects them.
func (l *look) objects(ctx context.Context, group *errgroup.Group) error {
	if !l.how.Adds {
		l.takeAll(ctx, group)
	}
	if !concerned(l.k) {
		return nil // not being served now does not say what is wanted
	}
	selector, listed := l.how.Selector, l.how.Asks
	if l.how.Adds && (!l.k.Collected || l.k.State != graph.Synced) {
		selector, listed = "", true // the graph does not know which objects carry the finalizer
	}
	if !listed {
		return nil
	}
	judge := func(object map[string]any, m *metav1.ObjectMeta) error {
		if l.how.Adds {
			delete(l.carrying, m.UID)
		}
		return l.object(ctx, group, object, m)
	}
	err := l.lister.Each(ctx, l.gvr, metav1.NamespaceAll, selector, l.how.Full, judge)
	if err == nil && l.how.Adds && selector != "" {
		l.takeAll(ctx, group) // what was not selected
	}
	return err
}

// takeAll takes the finalizer off what carries it, as the graph has it: what has changed since is
// left alone.
func (l *look) takeAll(ctx context.Context, group *errgroup.Group) {
	for _, v := range l.carrying {
		m := &metav1.ObjectMeta{Namespace: v.Namespace, Name: v.Name, UID: v.UID, ResourceVersion: v.ResourceVersion,
			Finalizers: v.Finalizers, Annotations: map[string]string{v1beta1.ArmedAtAnnotation: ""}}
		l.change(ctx, group, nil, func(ctx context.Context) (finalizers.Result, error) {
			return l.writer.Take(ctx, l.gvr, m)
		})
	}
}

// object counts one object, and brings it in line. An error ends the look.
func (l *look) object(ctx context.Context, group *errgroup.Group, object map[string]any, m *metav1.ObjectMeta) error {
	if m.DeletionTimestamp != nil {
		return ctx.Err() // its deletion has been accepted
	}
	namespace, err := namespaceOf(ctx, l.policies, m.Namespace)
	if err != nil {
		return fmt.Errorf("judge %s %s: %w", l.gvr.GroupResource(), cache.MetaObjectToName(m), err)
	}
	q := policies.Stored(l.kind, l.gvr, object, namespace)
	if len(l.how.Some) > 0 {
		for _, key := range l.set.About(q) {
			l.count(key, tally{matched: 1})
		}
	}
	if !l.how.Adds {
		return ctx.Err()
	}
	mark, errs := l.set.FinalizersFor(q)
	by := policies.PolicyKey{Kind: "DeletionPolicy", Name: mark.By}
	switch {
	case mark.By != "" && len(mark.Missing(m.Finalizers)) == 0:
		l.count(by, tally{wanted: 1, carrying: 1})
	case mark.By != "":
		l.count(by, tally{wanted: 1})
		l.change(ctx, group, &by, func(ctx context.Context) (finalizers.Result, error) {
			return l.writer.Put(ctx, l.gvr, m, mark)
		})
	case len(errs) == 0 && slices.Contains(m.Finalizers, v1beta1.Finalizer):
		// An object that has changed since may want the finalizer now. The next pass judges it.
		l.change(ctx, group, nil, func(ctx context.Context) (finalizers.Result, error) {
			return l.writer.Take(ctx, l.gvr, m)
		})
	}
	return ctx.Err()
}

func (l *look) count(key policies.PolicyKey, t tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found[key] = l.found[key].plus(t)
}

// change makes one change in the group; by is the policy for which it adds the finalizer. If
// requests of the kind are put off, the group ends, and the kind is left to the next pass.
func (l *look) change(ctx context.Context, group *errgroup.Group, by *policies.PolicyKey,
	change func(context.Context) (finalizers.Result, error)) {
	if ctx.Err() != nil {
		return // the pass is cut short, or the kind given up
	}
	group.Go(func() error {
		result, asked := finalizers.Failed, time.Now()
		err := l.requests.Send(ctx, "patch", l.gvr.GroupResource(), func(ctx context.Context) (err error) {
			result, err = change(ctx)
			return err
		})
		if err != nil && ctx.Err() != nil {
			return nil // it was not even tried
		}
		if by != nil {
			switch result {
			case finalizers.Done, finalizers.Already:
				l.count(*by, tally{carrying: 1})
			case finalizers.Gone:
				l.count(*by, tally{wanted: -1})
			case finalizers.Changed:
				err = fmt.Errorf("one of %s has changed meanwhile", l.gvr.GroupResource())
			case finalizers.Failed:
			}
		}
		switch {
		case request.IsBusy(err):
			return err
		case err != nil:
			l.fail(err)
			if result == finalizers.Failed {
				l.mu.Lock()
				l.refused++
				l.mu.Unlock()
			}
		case result == finalizers.Done:
			l.show()
		}
		if now := time.Now(); err == nil && now.Sub(asked) > tooLate && now.Sub(l.began) > slice {
			return errSlow
		}
		return nil
	})
}

// fail records an error. Why the kind was given up comes first.
func (l *look) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.again = true
	if request.IsBusy(err) || errors.Is(err, errSlow) {
		l.failure.errs = slices.Insert(l.failure.errs, 0, err)
	} else {
		l.failure.errs = append(l.failure.errs, err)
	}
	l.failure.errs = l.failure.errs[:min(len(l.failure.errs), mostErrors)]
	l.failure.mayPass = l.failure.mayPass || !finalizers.CannotCarry(err)
}

// namespaceOf returns the Namespace of an object, which is read if the watch has not shown it yet;
// nil if there is none. Without it no policy that selects namespaces can be judged, and under
// Ignore an object that cannot be judged counts as one that no policy is about.
func namespaceOf(ctx context.Context, p *live.State, name string) (map[string]any, error) {
	if name == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, request.Timeout)
	defer cancel()
	return p.NamespaceNow(ctx, name)
}
