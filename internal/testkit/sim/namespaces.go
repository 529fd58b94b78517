package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/graph"
)

// pass is a drainer's look at a namespace: what it has listed and tried so far.
type pass struct {
	of         int // which namespace of that name
	discovered bool
	listed     map[schema.GroupResource][]*object
	tried      map[schema.GroupResource]bool
	refused    map[schema.GroupResource]bool
}

// mostWaits is after how many passes that ended in waiting a drainer compares what it waits for
// with the server.
const mostWaits = 20

// drain lets a process that believes that it leads take one step with a namespace that is being
// deleted.
func (w *cluster) drain() error {
	if len(w.server.ending) == 0 {
		return nil
	}
	ending := slices.Sorted(maps.Keys(w.server.ending))
	c, ns := pick(w, w.working()), pick(w, ending)
	p := c.passes[ns]
	if p == nil || p.of != w.server.ending[ns] {
		p = &pass{of: w.server.ending[ns], listed: map[schema.GroupResource][]*object{}, tried: map[schema.GroupResource]bool{}, refused: map[schema.GroupResource]bool{}}
		c.passes[ns] = p
	}
	step := drain.Next(c.drained(ns, p))
	switch step.Verb {
	case drain.Discover:
		p.discovered = true
		return c.discover(w.server)
	case drain.List:
		for _, kind := range step.Kinds {
			p.listed[kind] = w.server.in(ns, kind)
		}
	case drain.Delete:
		return w.empty(c, ns, p, step)
	case drain.Wait:
		delete(c.passes, ns)
		if c.waits[ns]++; c.waits[ns]%mostWaits == 0 {
			return w.compareIn(c, ns)
		}
	case drain.Finalize:
		delete(c.passes, ns)
		for _, k := range w.server.kinds {
			if left := w.server.in(ns, k.GroupResource()); k.served && len(left) > 0 {
				return w.tell(c, fmt.Errorf("%s: namespace %s goes, and %s is in it", c.name, ns, left[0].UID), left[0].UID)
			}
		}
		w.stats["namespaces emptied"]++
		delete(w.server.ending, ns)
	}
	return nil
}

// drained is what a collector knows of a namespace.
func (c *collector) drained(ns string, p *pass) drain.State {
	inv := c.graph.Inventory(ns)
	state := drain.State{Waves: drain.DefaultWaves(), Finalizers: inv.Finalizers, Discovered: p.discovered}
	for _, k := range c.graph.Stats().Kinds {
		if !k.Served || !k.Namespaced {
			continue
		}
		gr := k.GroupResource()
		d := drain.Kind{Kind: gr, Wave: drain.DefaultWave(gr), Complete: k.State == graph.Synced, Tried: p.tried[gr]}
		if p.refused[gr] {
			d.Refused = "refused"
		}
		for _, n := range inv.Kinds {
			if n.Kind == gr {
				d.Total, d.Terminating = n.Total, n.Terminating
			}
		}
		if list, ok := p.listed[gr]; ok {
			d.Listed, d.Total, d.Terminating = true, len(list), 0
			for _, o := range list {
				if o.Deleting {
					d.Terminating++
				}
			}
		}
		state.Kinds = append(state.Kinds, d)
	}
	slices.SortFunc(state.Kinds, func(a, b drain.Kind) int { return cmp.Compare(a.Kind.String(), b.Kind.String()) })
	return state
}

// empty deletes objects of some kinds by their uids.
func (w *cluster) empty(c *collector, ns string, p *pass, step drain.Step) error {
	for _, kind := range step.Kinds {
		p.tried[kind] = true
		chosen := p.listed[kind]
		delete(p.listed, kind) // what is left has to be listed again
		if views, _ := c.graph.Content(ns, kind, 0, mostObjects); chosen == nil {
			for _, v := range views {
				if o := w.server.kind(kind).objects[v.UID]; o != nil && !v.Deleting {
					chosen = append(chosen, o)
				}
			}
		}
		for _, o := range chosen {
			switch {
			case w.server.kind(kind).objects[o.UID] == nil || o.Deleting:
				continue
			case w.refuses():
				p.refused[kind] = true
				continue
			}
			if pod := w.podLeft(c, ns); step.Wave > 0 && pod != nil {
				return w.tell(c, fmt.Errorf("%s: %s is deleted with its namespace, while pod %s is there", c.name, o.UID, pod.UID), o.UID, pod.UID)
			}
			w.stats["deleted with their namespaces"]++
			w.server.remove(o, metav1.DeletePropagationBackground)
		}
	}
	return nil
}

// podLeft finds a pod in a namespace that a collector has been told of.
func (w *cluster) podLeft(c *collector, ns string) *object {
	pods := schema.GroupResource{Resource: "pods"}
	k := w.server.kind(pods)
	for _, ch := range k.log[:c.told()[pods]] {
		if o := k.objects[ch.object.UID]; o != nil && o.Namespace == ns {
			return o
		}
	}
	return nil
}

// compareIn tells a collector what it waits for in vain.
func (w *cluster) compareIn(c *collector, ns string) error {
	for _, k := range w.server.kinds {
		views, _ := c.graph.Content(ns, k.GroupResource(), 0, mostObjects)
		for _, v := range views {
			if k.objects[v.UID] == nil && k.served && !k.forbidden {
				if err := c.apply(graph.NotFound{Kind: v.Kind, UID: v.UID, History: c.graph.History()}, v.UID, ""); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// end begins the deletion of a namespace.
func (s *server) end(ns string) {
	if s.ending[ns] == 0 {
		s.ended++
		s.ending[ns] = s.ended
	}
}

// in returns what a namespace holds of a kind, oldest first.
func (s *server) in(ns string, gr schema.GroupResource) []*object {
	list := []*object{}
	for _, o := range s.all() {
		if o.Namespace == ns && o.Kind == gr {
			list = append(list, o)
		}
	}
	return list
}

// leftBehind says which namespace should be gone, or empty but for what others hold.
func (w *cluster) leftBehind() error {
	for _, ns := range slices.Sorted(maps.Keys(w.server.ending)) {
		held := false
		for _, k := range w.server.kinds {
			for _, o := range w.server.in(ns, k.GroupResource()) {
				if held = true; !o.Deleting && !slices.ContainsFunc(w.server.all(), func(p *object) bool {
					return p.Namespace == ns && p.Kind.Resource == "pods"
				}) {
					return fmt.Errorf("namespace %s is being deleted, no pod is left, and %s is not deleted", ns, o.UID)
				}
			}
		}
		if !held {
			return fmt.Errorf("namespace %s is empty, and is not gone", ns)
		}
	}
	return nil
}
