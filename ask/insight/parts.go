package insight

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// part is a namespace or a definition, with which more than its dependents is deleted.
type part struct {
	item        *Item
	view        graph.View
	propagation metav1.DeletionPropagation

	begun, over bool
	waves       []wave      // those that have not begun
	open        []types.UID // the objects of begun waves that are not gone yet
}

// wave are the objects of a namespace or a definition that are deleted at once.
type wave struct {
	why     string
	objects []graph.View
}

// drain sets the waves in which the content of a namespace is deleted.
func (c *playing) drain(l *part) {
	of := func(v graph.View) int {
		if v.Kind == pods {
			return 0
		}
		return 1
	}
	if c.waves != nil {
		if f := c.waves(l.view.Name); f != nil {
			of = f
		}
	}
	c.draining[l.view.Name] = true
	byWave := map[int][]graph.View{}
	for _, v := range c.world.held(&l.view) {
		n := of(v)
		byWave[n] = append(byWave[n], v)
	}
	for _, n := range slices.Sorted(maps.Keys(byWave)) {
		l.waves = append(l.waves, wave{fmt.Sprintf("in the namespace, wave %d", n+1), byWave[n]})
	}
}

// advance begins the next wave of each namespace and definition whose last wave is gone, or ends it
// if it has no more, and reports whether any advanced. With stuck, nothing else happens any more,
// so next waves begin although objects are left.
func (c *playing) advance(stuck bool) (goesOn bool) {
	step := c.step + 1
	for n := 0; n < len(c.later); n++ { // c.later may grow meanwhile
		l := c.later[n]
		if l.over {
			continue
		}
		if !l.begun {
			l.begun = true
			if l.view.Kind == namespaces {
				c.drain(l)
			} else { // all instances of a definition are one wave
				l.item.Propagation = l.propagation
				l.waves = []wave{{"of the definition", c.world.held(&l.view)}}
			}
		}
		for len(l.open) > 0 && !c.world.Graph.Has(l.open[len(l.open)-1]) {
			l.open = l.open[:len(l.open)-1]
		}
		if len(l.open) > 0 && (!stuck || len(l.waves) == 0) {
			continue
		}
		goesOn, c.step = true, step
		if len(l.waves) > 0 {
			c.deleteWave(l)
			continue
		}
		l.over = true
		now, ok := c.world.Graph.Find(l.item.UID)
		if !ok {
			continue
		}
		c.write(l.item, &now, slices.DeleteFunc(slices.Clone(now.Finalizers), func(f string) bool {
			return f == cleanup && now.Kind == definitions
		}))
	}
	return goesOn
}

// deleteWave deletes the objects of the next wave of a namespace or a definition.
func (c *playing) deleteWave(l *part) {
	next := l.waves[0]
	l.waves = l.waves[1:]
	for _, v := range next.objects {
		now, ok := c.world.Graph.Find(v.UID)
		if !ok {
			continue // it was deleted with an owner
		}
		l.open = append(l.open, v.UID)
		i := c.item(v.UID)
		c.meet(i, &now)
		i.via = l.view.UID
		if !now.Deleting {
			i.Why = next.why
			c.delete(i, &now, metav1.DeletePropagationBackground)
		} else {
			i.Outcome, i.Stage = Deleted, c.stage
			c.write(i, &now, now.Finalizers) // it is gone when its finalizers are removed
		}
	}
}
