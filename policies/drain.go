package policies

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Drain is the order in which the content of a namespace goes.
type Drain struct {
	// Policy is the DrainPolicy; empty: there is none, and it goes as Kubernetes has it.
	Policy string
	Waves  []drain.Wave
	// Archive has the namespace recorded, in a first wave with which nothing goes; nil: none does.
	Archive *Archiving
	c       *compiled
	archive *compiled
}

// archiveWave is the first wave of a namespace that is recorded. No DrainPolicy has one of that name.
const archiveWave = "weir.dev/archive"

// DrainOf is the drain of a namespace, given as its object; nil where no policy says any.
func (s *Set) DrainOf(namespace map[string]any) *Drain {
	d := &Drain{archive: s.archiveOf(namespace)}
	if d.archive != nil {
		d.Archive, d.Waves = d.archive.archives(), []drain.Wave{{Name: archiveWave}}
	}
	for _, c := range s.drains {
		if c.namespaces != nil && !c.namespaces.Matches(object(namespace).labels()) {
			continue
		}
		d.Policy, d.c = c.key.Name, c
		for _, w := range c.waves {
			d.Waves = append(d.Waves, w.Wave)
		}
		return d
	}
	if d.archive == nil {
		return nil
	}
	d.Waves = append(d.Waves, drain.DefaultWaves()...)
	return d
}

// first is the index of the first wave with which anything goes.
func (d *Drain) first() int {
	if d.Archive != nil {
		return 1
	}
	return 0
}

// Wave is the index of the wave that an object goes with: the first that names it, or the last.
func (d *Drain) Wave(gr schema.GroupResource, obj map[string]any) int {
	if d.c == nil {
		return d.first() + drain.DefaultWave(gr)
	}
	for i, w := range d.c.waves {
		if namesResource(w.resources, gr) && (w.objects == nil || w.objects.Matches(object(obj).labels())) {
			return d.first() + i
		}
	}
	return len(d.Waves) - 1
}

// WavesOf are the indexes of the waves that objects of a resource can go with, in their order: more
// than one where the labels of the object decide.
func (d *Drain) WavesOf(gr schema.GroupResource) []int {
	if d.c == nil {
		return []int{d.Wave(gr, nil)}
	}
	var out []int
	for i, w := range d.c.waves {
		if !namesResource(w.resources, gr) {
			continue
		}
		out = append(out, d.first()+i)
		if w.objects == nil {
			return out
		}
	}
	if last := len(d.Waves) - 1; !slices.Contains(out, last) {
		out = append(out, last)
	}
	return out
}

// Current is the wave that a namespace is at and when it began, as the controller has written into
// the namespace. Until it has, that is the first; the time is zero where none is written. What was
// written before the namespace was deleted counts for nothing: a manifest that was copied from
// another namespace may bring it along. Nor does a time that is still to come by now, which is the
// API server's time, nor what Weir has not sealed: whoever may edit the namespace would decide in
// which order its content goes, or have it held for ever. sealed is nil where there is no key.
//
// (Who wrote a field is in managedFields, too, but under a name of the writer's own choice: that
// proves nothing.)
func (d *Drain) Current(namespace map[string]any, now time.Time, sealed func(text, seal string) bool) (wave int, since time.Time) {
	ns := object(namespace)
	if sealed != nil && !sealed(Sealed(string(ns.uid()), ns.annotation(v1beta1.DrainAnnotation), ns.annotation(v1beta1.DrainSinceAnnotation)), ns.annotation(v1beta1.DrainSealAnnotation)) {
		return 0, time.Time{}
	}
	wave = slices.IndexFunc(d.Waves, func(w drain.Wave) bool { return w.Name == ns.annotation(v1beta1.DrainAnnotation) })
	since, noTime := time.Parse(time.RFC3339, ns.annotation(v1beta1.DrainSinceAnnotation))
	deleted, alive := time.Parse(time.RFC3339, ns.str("metadata", "deletionTimestamp"))
	switch {
	case wave < 0, alive != nil, noTime == nil && since.Before(deleted), noTime == nil && since.After(now.Add(drainSkew)):
		return 0, time.Time{}
	case noTime != nil:
		return wave, time.Time{}
	}
	return wave, since
}

// drainSkew is how far what is known of the API server's clock may be behind what another process
// knew of it.
const drainSkew = 10 * time.Second

// Sealed is what is sealed of a wave: of this namespace, and of no other that has its name.
func Sealed(uid, wave, since string) string { return "drain\n" + uid + "\n" + wave + "\n" + since }

// unattended is after what time a namespace that is at no wave yet is not held up any more: whoever
// drains writes that into it at once, so no client does, and it would be stuck for good. One that is
// to be recorded with failurePolicy Fail stays.
const unattended = 2 * time.Minute

// holdByDrain refuses what the built-in namespace controller deletes before its turn. It comes
// again.
func (s *Set) holdByDrain(q *Question, v *verdict) {
	ns := object(q.NamespaceObject)
	if len(s.drains)+len(s.archives) == 0 || !emptiesNamespaces(q) || !q.namespaced() ||
		!ns.terminating() || q.judged().terminating() {
		return
	}
	d := s.DrainOf(ns)
	if d == nil {
		return
	}
	gr := q.Resource.GroupResource()
	if wildcardLeavesOut(gr.Group, gr.Resource) && (d.c == nil || !namesResource(d.c.resources, gr)) {
		return // no client waits for an event
	}
	wave := d.Wave(gr, q.OldObject)
	now, since := d.Current(ns, q.Now, q.Sealed)
	by := d.c
	if by == nil || d.Archive != nil && now == 0 {
		by = d.archive
	}
	if wave <= now || since.IsZero() && by.failurePolicy != v1beta1.Fail && ns.deletedBefore(q.Now.Add(-unattended)) {
		return
	}
	v.add(by, finding{code: 409,
		text: fmt.Sprintf("%s is deleted in wave %q of its namespace, which is at wave %q", q.what(), d.Waves[wave].Name, d.Waves[now].Name),
	}, refuse)
}
