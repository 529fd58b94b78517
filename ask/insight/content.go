package insight

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
)

// mostContent bounds the objects that are examined to tell who has to act on the content of a
// namespace or a definition.
const mostContent = 20_000

// share is the part of what is left on which one actor has to act.
type share struct {
	cause   Cause
	first   graph.View
	objects []Object
}

// holds is evidence of what holds the first object. Names are without the given namespace.
func (s *share) holds(namespace string) []string {
	switch {
	case s.cause.endless:
		return []string{howToBreakIt}
	case s.first.Deleting && s.cause.finalizer != "":
		return []string{fmt.Sprintf("%s has the finalizer %s", s.cause.holder.Short(namespace), s.cause.finalizer)}
	}
	return nil
}

// byDeleter returns what objects wait for, of which deleter has to delete those that are not being
// deleted yet, or is refused.
func (w *explanation) byDeleter(deleter Cause) func(*graph.View) []Cause {
	return func(v *graph.View) []Cause {
		if v.Deleting {
			return w.of(v)
		}
		c := w.acting(v.UID, deleter.Actor)
		if c.refused == (refusal{}) {
			c.refused = deleter.refused
		}
		return []Cause{c}
	}
}

// shares groups objects by who has to act on them, the largest group first. Objects are sorted by
// name first, so the samples do not depend on the order of the graph.
func (w *explanation) shares(all []graph.View, causes func(*graph.View) []Cause) []*share {
	slices.SortFunc(all, func(a, b graph.View) int {
		return cmp.Or(cmp.Compare(a.Kind.Group, b.Kind.Group), cmp.Compare(a.Kind.Resource, b.Kind.Resource),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	byActor := map[string]*share{}
	var out []*share
	for _, v := range all {
		for _, c := range causes(&v) {
			s := byActor[c.Actor]
			if s == nil {
				s = &share{first: v, cause: c.refused.cause()}
				s.cause.Actor, s.cause.shared, s.cause.endless = c.Actor, true, c.endless
				s.cause.finalizer, s.cause.manager, s.cause.holder = c.finalizer, c.manager, c.holder
				byActor[c.Actor] = s
				out = append(out, s)
			}
			if n := len(s.objects); n > 0 && s.objects[n-1].UID == v.UID {
				continue // one component has two finalizers on it
			}
			s.objects = append(s.objects, objectOf(&v))
		}
	}
	slices.SortStableFunc(out, func(a, b *share) int {
		return cmp.Or(len(b.objects)-len(a.objects), cmp.Compare(a.cause.Actor, b.cause.Actor))
	})
	for _, s := range out {
		s.cause.Objects = s.objects[:min(len(s.objects), someNames)]
	}
	return out
}

// draining returns the causes of a terminating namespace: one for each actor on what is left in it.
func (w *explanation) draining(v *graph.View) []Cause {
	c := w.acting(v.UID, "the namespace controller")
	c.Look, c.about = cmp.Or(c.Look, "kubectl weir pending -n "+v.Name), aboutContent
	if w.Namespace != "" && w.Namespace != v.Name {
		c.What = "the namespace is terminating"
		return []Cause{c}
	}
	inv := w.Graph.Inventory(v.Name)
	total := 0
	for _, k := range inv.Kinds {
		total += k.Total
	}
	if total == 0 {
		if len(v.Finalizers) > 0 {
			return nil // these hold it, and the namespace controller does not remove them
		}
		c.What = "nothing is left in the namespace that can be seen"
		return []Cause{c}
	}
	if len(inv.Finalizers) > 0 {
		var names []string
		for f, n := range inv.Finalizers {
			names = append(names, fmt.Sprintf("%s on %d", f, n))
		}
		slices.Sort(names)
		c.Evidence = append(c.Evidence, "finalizers in it: "+strings.Join(names, ", "))
	}
	if total > mostContent {
		var counts []string
		for _, k := range inv.Kinds {
			counts = append(counts, fmt.Sprintf("%d %s", k.Total, k.Kind))
		}
		c.What = "content is left in the namespace: " + strings.Join(counts, ", ")
		return []Cause{c}
	}
	return w.left(c, "content is left in the namespace: ", w.held(v))
}

// instancesLeft returns the causes of a terminating definition with instances.
func (w *explanation) instancesLeft(v *graph.View) []Cause {
	c := w.finalizer(v, cleanup)
	c.about = aboutContent
	kind := schema.ParseGroupResource(v.Name)
	if _, read := w.read[kind]; !read {
		return []Cause{c}
	}
	all := w.held(v)
	if len(all) == 0 {
		return []Cause{c}
	}
	if len(all) > mostContent {
		c.What += fmt.Sprintf(" (%d %s are left)", len(all), kind)
		return []Cause{c}
	}
	c.finalizer = ""
	return w.left(c, "the definition waits for its instances: ", all)
}

// left returns a cause for each actor on objects. The first has the evidence of like.
func (w *explanation) left(like Cause, what string, all []graph.View) (out []Cause) {
	for n, s := range w.shares(all, w.byDeleter(like)) {
		s.cause.What, s.cause.about = what+kindsOf(s.objects), like.about
		s.cause.Look = cmp.Or(s.cause.Look, like.Look)
		if n == 0 {
			s.cause.Evidence = slices.Concat(like.Evidence, s.cause.Evidence)
		}
		s.cause.Evidence = append(s.cause.Evidence, s.holds("")...)
		out = append(out, s.cause)
	}
	return out
}

// held returns the content of a namespace, or the instances of a definition; nothing for other
// kinds.
func (w *World) held(v *graph.View) (all []graph.View) {
	switch v.Kind {
	case namespaces:
		var kinds []schema.GroupResource
		for _, k := range w.Graph.Inventory(v.Name).Kinds {
			kinds = append(kinds, k.Kind)
		}
		return slices.Collect(w.in(v.Name, kinds))
	case definitions:
		kind := schema.ParseGroupResource(v.Name) // definitions are named so
		for o := range w.objects() {
			if o.Kind == kind {
				all = append(all, *o)
			}
		}
	}
	return all
}

// in yields the objects of some kinds in a namespace.
func (w *World) in(namespace string, kinds []schema.GroupResource) iter.Seq[graph.View] {
	return func(yield func(graph.View) bool) {
		for _, k := range kinds {
			for from := uint32(0); ; {
				var views []graph.View
				views, from = w.Graph.Content(namespace, k, from, 4096)
				for i := range views {
					if !yield(views[i]) {
						return
					}
				}
				if from == 0 {
					break
				}
			}
		}
	}
}

// kindsOf counts objects by kind, sorted by kind.
func kindsOf(all []Object) string {
	counts := map[string]int{}
	var kinds []string
	for _, o := range all {
		if counts[o.Kind]++; counts[o.Kind] == 1 {
			kinds = append(kinds, o.Kind)
		}
	}
	slices.Sort(kinds)
	for i, k := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", counts[k], k)
	}
	return strings.Join(kinds, ", ")
}
