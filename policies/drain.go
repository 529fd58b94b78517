package policies

import (
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Drain is the order in which the content of a namespace goes.
type Drain struct {
	// Policy is the DrainPolicy; "" if there is none, and Kubernetes' order applies.
	Policy string
	Waves  []drain.Wave
	// Archive records the namespace, in a first wave in which nothing is deleted; nil if it is not
	// recorded.
	Archive *Archiving
	c       *compiled
	archive *compiled
}

// archiveWave is the first wave of a namespace that is recorded. No DrainPolicy can have a wave of
// that name.
const archiveWave = "weir.dev/archive"

// DrainOf returns the drain of a namespace, given as its object; nil if no policy applies.
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

// first returns the index of the first wave in which objects are deleted.
func (d *Drain) first() int {
	if d.Archive != nil {
		return 1
	}
	return 0
}

// Wave returns the index of the wave of an object: the first that names it, or the last.
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

// WavesOf returns the indexes of the waves that objects of a resource can be in, in order: more
// than one if labels decide.
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

// Current returns the wave that a namespace is at and when it began, as the controller has written
// into the namespace. By default that is the first; the time is zero if none is written.
//
// It ignores what was written before the namespace was deleted, which a manifest copied from
// another namespace may contain; a time after now, the API server's time; and what Weir has not
// sealed, since a user who may edit the namespace would otherwise decide the order in which its
// content goes, or have it held for ever. sealed is nil if there is no key. The manager in
// managedFields proves nothing: writers choose it.
func (d *Drain) Current(namespace map[string]any, now time.Time,
	sealed func(text, seal string) bool) (wave int, since time.Time) {
	ns := object(namespace)
	if sealed != nil && !sealed(Sealed(string(ns.uid()), ns.annotation(v1beta1.DrainAnnotation),
		ns.annotation(v1beta1.DrainSinceAnnotation)), ns.annotation(v1beta1.DrainSealAnnotation)) {
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

// drainSkew is how far this process's knowledge of the API server's clock may be behind another's.
const drainSkew = 10 * time.Second

// Sealed returns what is sealed of a wave. The uid ties it to this namespace, and no other of its
// name.
func Sealed(uid, wave, since string) string { return "drain\n" + uid + "\n" + wave + "\n" + since }

// unattended is how long a namespace that is at no wave yet is held up. A process that drains
// writes the wave at once, so after that time none does, and the namespace would be stuck. One that
// is to be recorded with failurePolicy Fail stays.
const unattended = 2 * time.Minute

// holdByDrain refuses deletes by the built-in namespace controller before their wave. It retries.
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
		text: fmt.Sprintf("%s is deleted in wave %q of its namespace, which is at wave %q", q.what(), d.Waves[wave].Name,
			d.Waves[now].Name),
	}, refuse)
}

// drainRules returns the entries that send the namespace controller's deletes to Weir, which holds
// those of later waves.
func (s *Set) drainRules(kept []schema.GroupResource) (out []WebhookRules) {
	for _, part := range Parts {
		all := named([]v1beta1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*"}}}, kept)
		var namespaces []labels.Selector
		for _, c := range s.drains {
			if c.part == part {
				all, namespaces = append(all, named(c.resources, kept)...), append(namespaces, c.namespaces)
			}
		}
		for _, c := range s.archives {
			selector := c.objects // of namespaces, it is the narrower of the two
			if selector == nil {
				selector = c.namespaces
			}
			if c.part == part {
				namespaces = append(namespaces, selector)
			}
		}
		if len(namespaces) == 0 {
			continue
		}
		r := WebhookRules{
			Name: "drain." + string(WebhookDelete), Webhook: WebhookDelete, FailurePolicy: admissionregistrationv1.Ignore,
			Rules: webhookRules(scoped(all, v1beta1.NamespacedScope),
				[]admissionregistrationv1.OperationType{admissionregistrationv1.Delete}, nil),
			NamespaceSelector: common(namespaces),
			MatchConditions: []admissionregistrationv1.MatchCondition{
				{Name: "is-namespace-controller", Expression: isEmptying()},
				{Name: "not-terminating", Expression: notTerminating},
			},
		}
		if part != PartIgnore {
			r.Part, r.FailurePolicy, r.Name = part, admissionregistrationv1.Fail, string(part)+"."+r.Name
		}
		out = append(out, s.lenientWhereItHasToBe(r)...)
	}
	return out
}
