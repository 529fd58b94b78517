package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/graph"
)

// DefaultNamespaceSyncs is how many namespaces are drained at once, as in the reference (RB 9.1). Their
// requests share one limit with everything else.
const DefaultNamespaceSyncs = 10

const (
	// settleTime gathers changes to a namespace's content into one look at it.
	settleTime = 20 * time.Millisecond
	// showTime is how long a pass waits for the watch to show what its deletes did, before it leaves the
	// rest to the next pass.
	showTime = 300 * time.Millisecond
	// conditionsAfter spares a namespace that is gone in a moment the writing of conditions, and
	// conditionsEvery one that drains for long their rewriting at each step.
	conditionsAfter = 250 * time.Millisecond
	conditionsEvery = time.Second
	// serversAgree is how long several API servers may take until all of them refuse to create in a
	// namespace that is being deleted (RB 7.7). A single one refuses at once.
	serversAgree = 5 * time.Second
)

// drainer empties namespaces that are being deleted and lets them go: the work of the namespace
// controller. What comes next is package drain's to say.
type drainer struct {
	store        *store
	requester    *requester
	undiscovered func() []string
	namespaces   typedcorev1.NamespaceInterface
	leases       typedcoordinationv1.LeasesGetter
	log          logr.Logger
	queue        workqueue.TypedRateLimitingInterface[string]

	mu      sync.Mutex
	leading bool
	ending  map[string]struct{}      // namespaces that are being deleted, as their watch shows them
	signals map[string]chan struct{} // closed and replaced when the content of a namespace changes
	begun   map[string]*progress     // the namespaces under way
	servers struct {
		several bool
		until   time.Time // when to look again
	}
}

// progress is what is remembered of a namespace between passes. Losing it costs nothing but a write.
type progress struct {
	since   time.Time // when it was first looked at
	written time.Time // when its conditions were last written
}

func newDrainer(s *store, r *requester, undiscovered func() []string, ns typedcorev1.NamespaceInterface, leases typedcoordinationv1.LeasesGetter, log logr.Logger) *drainer {
	return &drainer{
		store: s, requester: r, undiscovered: undiscovered, namespaces: ns, leases: leases, log: log,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](250*time.Millisecond, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "namespace"}),
		ending: map[string]struct{}{}, signals: map[string]chan struct{}{}, begun: map[string]*progress{},
	}
}

// changed is told of every change to a namespace object.
func (d *drainer) changed(name string, how change) {
	d.mu.Lock()
	if how == deleting {
		d.ending[name] = struct{}{}
	} else {
		delete(d.ending, name)
	}
	leading := d.leading
	d.mu.Unlock()
	switch {
	case how == deleting && leading:
		d.queue.Add(name)
	case how == went:
		d.end(name)
	}
}

func (d *drainer) isEnding(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.ending[name]
	return ok
}

// touched is told which namespaces' content has changed.
func (d *drainer) touched(names []string) {
	d.mu.Lock()
	for _, name := range names {
		if c := d.signals[name]; c != nil {
			close(c)
			delete(d.signals, name)
		}
	}
	d.mu.Unlock()
	for _, name := range names {
		d.queue.Forget(name)
		d.queue.AddAfter(name, settleTime)
	}
}

// signal returns a channel that is closed at the next change of a namespace's content.
func (d *drainer) signal(name string) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.signals[name]
	if c == nil {
		c = make(chan struct{})
		d.signals[name] = c
	}
	return c
}

// run drains with n goroutines until ctx ends, and joins them.
func (d *drainer) run(ctx context.Context, n int) {
	f := d.touched
	d.store.touched.Store(&f)
	d.mu.Lock()
	d.leading = true
	for name := range d.ending {
		d.queue.Add(name)
	}
	d.mu.Unlock()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for {
				name, closed := d.queue.Get()
				if closed {
					return
				}
				d.work(ctx, name)
				d.queue.Done(name)
			}
		})
	}
	<-ctx.Done()
	d.queue.ShutDown()
	wg.Wait()
}

func (d *drainer) work(ctx context.Context, name string) {
	again, err := d.pass(ctx, name)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		d.log.Info("draining failed, will try again", "namespace", name, "err", err.Error())
		d.queue.AddRateLimited(name)
	case again == done:
		d.end(name)
	case again > 0:
		d.queue.AddAfter(name, again)
	default:
		d.queue.AddRateLimited(name)
	}
}

// How a pass ends, when it is not in an error: the namespace needs nothing more from us, or it waits for
// its content, or a time.
const (
	done    time.Duration = -1
	waiting time.Duration = 0
)

// begin marks a namespace as being drained, if it is not yet. What it returns belongs to the pass that
// is under way: there is one at a time.
func (d *drainer) begin(name string) *progress {
	d.mu.Lock()
	p, ok := d.begun[name]
	if !ok {
		p = &progress{since: time.Now()}
		d.begun[name] = p
	}
	d.mu.Unlock()
	if !ok {
		d.store.apply(graph.Draining{Namespace: name, On: true})
	}
	return p
}

func (d *drainer) end(name string) {
	d.queue.Forget(name)
	d.mu.Lock()
	_, ok := d.begun[name]
	delete(d.begun, name)
	delete(d.signals, name)
	d.mu.Unlock()
	if ok {
		d.store.apply(graph.Draining{Namespace: name})
	}
}

// pass takes a namespace as far as it goes without waiting for others.
func (d *drainer) pass(ctx context.Context, name string) (time.Duration, error) {
	if !d.isEnding(name) {
		return done, nil // gone in the meantime
	}
	ns, err := d.namespaces.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return done, nil
	case err != nil:
		return waiting, fmt.Errorf("read namespace %s: %w", name, err)
	case ns.DeletionTimestamp == nil || !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes):
		return done, nil // alive, or held by somebody else
	}
	if wait := d.agreement(ctx, ns.DeletionTimestamp.Time); wait > 0 {
		return wait, nil
	}
	p := &pass{drainer: d, ns: ns, progress: d.begin(name), live: map[schema.GroupResource][]graph.Ref{}}
	p.count()
	for {
		step := drain.Next(p.state)
		d.log.V(1).Info("draining", "namespace", name, "step", step.Verb.String(), "why", step.Why)
		switch step.Verb {
		case drain.List:
			p.list(ctx, step.Kinds)
		case drain.Delete:
			if same, err := p.delete(ctx, step.Kinds); err != nil || !same {
				return done, err
			}
		case drain.Wait:
			return p.wait(ctx, step)
		default:
			return d.finalize(ctx, p.ns)
		}
		if ctx.Err() != nil {
			return waiting, ctx.Err()
		}
	}
}

// agreement is how long to wait until every API server refuses to create in a namespace whose deletion
// began at the given time. Unknown counts as several.
func (d *drainer) agreement(ctx context.Context, began time.Time) time.Duration {
	left := serversAgree - time.Since(began)
	if left <= 0 || !d.severalServers(ctx) {
		return 0
	}
	return left
}

func (d *drainer) severalServers(ctx context.Context) bool {
	d.mu.Lock()
	several, until := d.servers.several, d.servers.until
	d.mu.Unlock()
	if time.Now().Before(until) {
		return several
	}
	leases, err := d.leases.Leases(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"})
	several = err != nil || len(leases.Items) != 1
	d.mu.Lock()
	defer d.mu.Unlock()
	d.servers.several, d.servers.until = several, time.Now().Add(time.Minute)
	return several
}

// finalize takes our finalizer off a namespace's spec: what is not held otherwise goes with it.
func (d *drainer) finalize(ctx context.Context, ns *corev1.Namespace) (time.Duration, error) {
	name, uid := ns.Name, ns.UID
	for range 5 {
		ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
		_, err := d.namespaces.Finalize(ctx, ns, metav1.UpdateOptions{})
		switch {
		case err == nil:
			d.log.Info("finalized", "namespace", name, "uid", uid, "why", "nothing is left in it")
			return done, nil
		case apierrors.IsNotFound(err):
			return done, nil
		case !apierrors.IsConflict(err):
			return waiting, fmt.Errorf("finalize namespace %s: %w", name, err)
		}
		if ns, err = d.again(ctx, name, uid); ns == nil {
			return done, err
		}
	}
	return waiting, fmt.Errorf("finalize namespace %s: it changes all the time", name)
}

// again reads a namespace anew; nil if it is not there any more, or is another by now.
func (d *drainer) again(ctx context.Context, name string, uid types.UID) (*corev1.Namespace, error) {
	ns, err := d.namespaces.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && ns.UID != uid:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read namespace %s: %w", name, err)
	}
	return ns, nil
}
