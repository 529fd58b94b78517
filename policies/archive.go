package policies

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// unrecorded are resources whose objects controllers create again by themselves, and nobody
// restores.
var unrecorded = []schema.GroupResource{
	{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"}, {Group: "coordination.k8s.io", Resource: "leases"},
	{Resource: "endpoints"}, {Group: "discovery.k8s.io", Resource: "endpointslices"},
}

// Archiving is how a deleted object is recorded before it goes.
type Archiving struct {
	By        string // the policy
	Retention time.Duration
	// Fail holds objects that cannot be recorded. Otherwise they go unrecorded.
	Fail bool
	// RetainsVolumes makes the volumes of recorded claims stay.
	RetainsVolumes bool
	exclude        []v1beta1.ResourceRule
}

// Records reports whether objects of a resource are recorded.
func (a *Archiving) Records(gr schema.GroupResource) bool {
	return !slices.Contains(unrecorded, gr) && !namesResource(a.exclude, gr)
}

// archives returns the Archiving of a policy with an archive; nil for a nil policy.
func (c *compiled) archives() *Archiving {
	if c == nil {
		return nil
	}
	a := c.deletion.archive
	return &Archiving{By: c.key.Name, Retention: time.Duration(a.RetentionSeconds) * time.Second,
		Fail: c.failurePolicy == v1beta1.Fail, RetainsVolumes: a.Volumes == v1beta1.RetainVolumes, exclude: a.Exclude}
}

// archiving returns the first policy that matches and archives; nil if there is none. Weir's
// finalizer holds the object until it is recorded, so this applies to the same resources as a
// brake.
func (s *Set) archiving(q *Question, ask *evaluator) *compiled {
	if !s.mayHold(q, brakes) {
		return nil
	}
	for i, c := range ask.policies {
		if c.deletion.archive != nil && !c.onTrial() && ask.matches(i) {
			return c
		}
	}
	return nil
}

// recordsNamespaces reports whether the policy has namespaces recorded, with whatever they hold.
func (c *compiled) recordsNamespaces() bool {
	return c.deletion.archive != nil && !c.onTrial() && c.judges() &&
		c.about(namespaceResource) && c.scope != v1beta1.NamespacedScope
}

// archiveOf returns the policy by which a namespace is recorded, with all its content, when it is
// deleted: the first that matches, or that cannot be judged and has failurePolicy Fail; nil if
// there is none. Weir's own namespace is never recorded: it has the archive's key.
func (s *Set) archiveOf(namespace map[string]any) *compiled {
	if len(s.archives) == 0 || object(namespace).name() == s.own {
		return nil
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	q := Stored(kind, namespaceResource.WithVersion("v1"), namespace, namespace)
	ask := s.askDeletions(q.asDelete(), &verdict{set: s, q: &q})
	for i, c := range ask.policies {
		if !slices.Contains(s.archives, c) {
			continue
		}
		if says := ask.says(i); says == saysYes || says != saysNo && c.failurePolicy == v1beta1.Fail {
			return c
		}
	}
	return nil
}

// archive returns the policy by which an object is recorded when it is deleted. It refuses only
// what nothing could hold: a delete after which another collector deletes dependents at once.
func (s *Set) archive(q *Question, w propagation, ask *evaluator, d *Decision) *compiled {
	by := s.archiving(q, ask)
	if by == nil || !q.Part.has(by) {
		return nil
	}
	if by.failurePolicy == v1beta1.Fail && !object(q.NamespaceObject).terminating() && w.policy != v1beta1.Orphan &&
		w.beginsAtOnce(q) {
		d.AsksCollector = d.AsksCollector || q.Collector == CollectorUnknown
		ask.v.add(by, finding{code: 403,
			text: fmt.Sprintf("%s may not be deleted with propagation policy Foreground: a policy records what is deleted "+
				"first, and the cluster's garbage collector would not wait for that", q.what()),
			way: fmt.Sprintf("To have it recorded, and then deleted: kubectl delete %s --cascade=background", q.kubectl()),
		}, by.actions)
	}
	return by
}

// hold records that the controller holds the object for a brake, or until it is recorded. It
// returns what the object must carry for that.
func (d *Decision) hold(brake, archive *compiled, enforced bool) Wanted {
	by := cmp.Or(brake, archive)
	if by == nil {
		return Wanted{}
	}
	if brake != nil {
		d.BrakedBy = brake.key.Name
	}
	d.Enforced = enforced
	return Wanted{By: by.key.Name, Finalizers: []string{v1beta1.Finalizer}}
}
