package namespaces

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/request"
)

// pass is one look at a namespace: what was counted, listed and tried.
type pass struct {
	*Drainer
	*progress
	ns       *corev1.Namespace
	seen     time.Time // when its deletion was first seen
	order    order
	marked   bool // the namespace records which wave is under way, and since when
	state    drain.State
	followed sets.Set[schema.GroupResource] // the kinds that the graph counts
	split    sets.Set[schema.GroupResource] // kinds that the graph has, and whose labels only a list tells
	live     map[part][]graph.Ref           // objects of live lists that do not terminate
}

// part is the objects of a kind that are in one wave.
type part struct {
	kind schema.GroupResource
	wave int
}

// pass takes the steps of a namespace until one has to wait.
func (d *Drainer) pass(ctx context.Context, name string) (outcome, error) {
	ctx = d.Requester.History.Mark(ctx) // before any look: later requests rest on it
	d.mu.Lock()
	e, ok := d.ending[name]
	d.mu.Unlock()
	if !ok {
		return d.late(ctx, name)
	}
	ns, err := d.Namespaces.Get(ctx, name, metav1.GetOptions{})
	switch {
	case request.NoSuchObject(err, kinds.Namespaces, name):
		d.absent(name, e)
		return finished, nil
	case err != nil:
		return pending, fmt.Errorf("read namespace %s: %w", name, err)
	case ns.DeletionTimestamp == nil || !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes):
		return finished, nil // alive, or held by another's finalizer
	}
	order, mine, err := d.orderOf(ns)
	if err != nil || !mine {
		return finished, err
	}
	seen := d.firstSeen(name, ns.UID)
	if wait := d.agreement(ctx, seen); wait > 0 {
		return recheck(wait), nil
	}
	p := &pass{Drainer: d, ns: ns, seen: seen, order: order, progress: d.begin(name, ns.UID), live: map[part][]graph.Ref{}}
	p.outside.Store(false)
	if left := time.Until(p.quiet); left > 0 {
		return recheck(left), nil
	}
	if err := p.count(); err != nil {
		return pending, err
	}
	return p.steps(ctx)
}

// steps takes one step after the other, until one has to wait.
func (p *pass) steps(ctx context.Context) (outcome, error) {
	for {
		step := drain.Next(p.state)
		p.Log.V(1).Info("draining", "namespace", p.ns.Name, "step", step.Verb.String(), "why", step.Why)
		stays := p.state.Home && !p.Companion // no wave begins, and the drainer deletes nothing in it
		if !stays && (step.Verb == drain.Delete || step.Verb == drain.Wait) {
			if p.reached.Load() == nil { // its content goes by wave, whether or not mark succeeds
				p.reached.Store(&reached{p.order, p.state.Current})
			}
			if same, err := p.mark(ctx, step.Current); err != nil || !same {
				return finished, err
			}
			p.reached.Store(&reached{p.order, step.Current})
		}
		switch step.Verb {
		case drain.List:
			p.list(ctx, step.Kinds)
		case drain.Delete:
			if same, err := p.delete(ctx, step); err != nil || !same {
				return finished, err
			}
		case drain.Wait:
			return p.wait(ctx, step)
		case drain.Discover:
			p.outside.Store(true) // before the look, so that no discovery that ends after it is missed
			if done, _, _ := p.Watcher.Discoveries.Since(p.seen); done {
				return recheck(settleTime), nil
			}
			return p.wait(ctx, step)
		default:
			return p.finish(ctx, step)
		}
		if ctx.Err() != nil {
			return pending, ctx.Err()
		}
	}
}

// agreement returns how long to wait until every API server refuses creates in a namespace whose
// deletion was first seen at the given time. An unknown number of servers counts as several.
func (d *Drainer) agreement(ctx context.Context, seen time.Time) time.Duration {
	left := serversAgree - time.Since(seen)
	if left <= 0 || !d.severalServers(ctx) {
		return 0
	}
	return left
}

func (d *Drainer) severalServers(ctx context.Context) bool {
	d.mu.Lock()
	several, until := d.servers.several, d.servers.until
	d.mu.Unlock()
	if time.Now().Before(until) {
		return several
	}
	leases, err := d.Leases.Leases(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"})
	several = err != nil || len(leases.Items) != 1
	d.mu.Lock()
	defer d.mu.Unlock()
	d.servers.several, d.servers.until = several, time.Now().Add(time.Minute)
	return several
}

// reread reads a namespace again. It returns nil if the namespace is gone or was replaced.
func (d *Drainer) reread(ctx context.Context, name string, uid types.UID) (*corev1.Namespace, error) {
	ns, err := d.Namespaces.Get(ctx, name, metav1.GetOptions{})
	switch {
	case request.NoSuchObject(err, kinds.Namespaces, name) || err == nil && ns.UID != uid:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read namespace %s: %w", name, err)
	}
	return ns, nil
}
