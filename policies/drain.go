package policies

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// Drain is the order in which the content of a namespace goes.
type Drain struct {
	// Policy is the DrainPolicy.
	Policy string
	Waves  []DrainWave
	c      *compiled
}

// DrainWave is one wave. A Timeout of 0 is none.
type DrainWave struct {
	Name    string
	Timeout time.Duration
	Proceed bool // after Timeout
}

// DrainOf is the drain of a namespace, given as its object; nil where no policy selects it.
func (s *Set) DrainOf(namespace map[string]any) *Drain {
	for _, c := range s.drains {
		if c.namespaces != nil && !c.namespaces.Matches(object(namespace).labels()) {
			continue
		}
		d := &Drain{Policy: c.key.Name, c: c}
		for _, w := range c.drain.waves {
			d.Waves = append(d.Waves, DrainWave{Name: w.Name, Timeout: w.timeout, Proceed: w.OnTimeout == v1alpha1.Proceed})
		}
		return d
	}
	return nil
}

// Wave is the index of the wave that an object goes with: the first that names it, or the last.
func (d *Drain) Wave(gr schema.GroupResource, obj map[string]any) int {
	for i, w := range d.c.drain.waves {
		if namesResource(w.Resources, gr) && (w.objects == nil || w.objects.Matches(object(obj).labels())) {
			return i
		}
	}
	return len(d.c.drain.waves) - 1
}

// current is the index of the wave that a namespace is at; the first until the controller says otherwise.
func (d *Drain) current(namespace object) int {
	name := namespace.annotation(v1alpha1.DrainAnnotation)
	for i, w := range d.Waves {
		if w.Name == name {
			return i
		}
	}
	return 0
}

// holdByDrain refuses what the built-in namespace controller deletes before its turn. It comes again.
func (s *Set) holdByDrain(q *Question, v *verdict) {
	ns := object(q.NamespaceObject)
	if len(s.drains) == 0 || q.User.Name != namespaceController || !q.namespaced() || !ns.terminating() || q.judged().terminating() {
		return
	}
	d := s.DrainOf(ns)
	if d == nil {
		return
	}
	gr := q.Resource.GroupResource()
	if wildcardLeavesOut(gr.Group, gr.Resource) && !namesResource(d.c.resources, gr) {
		return // nobody waits for an event
	}
	wave, now := d.Wave(gr, q.OldObject), d.current(ns)
	if wave <= now {
		return
	}
	v.add(finding{policy: d.c.key, code: 409,
		text: fmt.Sprintf("%s goes with wave %q of its namespace, which is at wave %q", q.what(), d.Waves[wave].Name, d.Waves[now].Name),
	}, refuse)
}
