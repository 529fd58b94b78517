package policies

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// notHeld drops DELETEs of objects that the finalizer holds for certain, where all that a policy
// could do about one is to have it carry the finalizer. One that was added to an object that existed
// has a time beside it: a DELETE may have begun before. A dry run is told how it would be deleted.
func (e *entry) notHeld(kept []schema.GroupResource) string {
	if !slices.ContainsFunc(e.policies, (*compiled).onlyHolds) {
		return ""
	}
	judged := slices.Clone(orphanedByDefault) // these carry another finalizer as well
	for _, c := range e.policies {
		if !c.onlyHolds() {
			judged = append(judged, explicit(c.named(kept))...)
		}
	}
	expression := "has(request.dryRun) && request.dryRun || oldObject == null || !(" +
		has("oldObject", "finalizers") + " && " + celString(v1beta1.Finalizer) + " in oldObject.metadata.finalizers) || (" +
		annotationOf("oldObject", v1beta1.ArmedAtAnnotation) + ") != '' || " + isAbout(judged)
	if slices.ContainsFunc(e.policies, func(c *compiled) bool { return c.deletion.archive != nil }) {
		expression += " || " + asksForeground // another collector would begin before anything is recorded
	}
	return expression
}

// onlyHolds tells whether a policy cannot refuse the delete of an object that carries the finalizer,
// nor say anything of it that the controller does not do by itself.
func (c *compiled) onlyHolds() bool {
	if !c.ready() || c.onTrial() || c.failurePolicy == v1beta1.Fail && len(c.conditions) > 0 {
		return false
	}
	d := c.deletion
	if d.protection != nil || d.brake != nil || d.propagation == nil {
		return d.protection == nil && d.brake == nil && d.archive != nil
	}
	return len(d.propagation.Allowed) == 0 && !c.readsAnnotation() && !(propagation{by: c}).keepsSome()
}
