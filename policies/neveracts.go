package policies

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// checkActs finds rules about dependents that can never have an effect.
func (c *compiled) checkActs(p *v1beta1.Propagation) {
	at := field.NewPath("spec", "propagation", "dependents")
	orphans := keepsSome(p)
	switch {
	case len(p.Dependents) == 0:
	case !orphans && c.deletion.onlyOrphans():
		c.mistake(at.String(), "it can never act: by default and allowed every deletion is Orphan, and "+
			"keeps all dependents. "+
			"To keep some, set default to Background, and action to Orphan for those")
	case !orphans:
		c.warn(at.String(), "it changes nothing: Background and Foreground delete all dependents. action "+
			"Delete makes an exception from an action Orphan further down")
	}
	rules := make([]v1beta1.ResourceRule, len(p.Dependents))
	for i, r := range p.Dependents {
		rules[i] = r.ResourceRule
		c.warnOfCovered(at.Index(i), r.ResourceRule, rules[:i])
	}
}

// onlyOrphans reports whether no user can delete with another propagation than Orphan: default
// replaces Background, and the absence of a propagation.
func (d *deletion) onlyOrphans() bool {
	byDefault := d.propagation.Default
	return !d.allows(v1beta1.Foreground) &&
		(byDefault == v1beta1.Orphan || byDefault == "" && !d.allows(v1beta1.Background))
}

// warnOfCovered warns of a rule whose resources the rules before it all name.
func (c *compiled) warnOfCovered(at *field.Path, r v1beta1.ResourceRule, before []v1beta1.ResourceRule) {
	names := explicit([]v1beta1.ResourceRule{r})
	isNew := func(gr schema.GroupResource) bool { return !namesResource(before, gr) }
	if len(names) > 0 && !wildcard([]v1beta1.ResourceRule{r}) && !slices.ContainsFunc(names, isNew) {
		c.warn(at.String(), fmt.Sprintf("it never applies: entries before it name %s", names[0]))
	}
}

// warnOfPods warns that pods of a Job which its controller deletes are kept.
func (c *compiled) warnOfPods() {
	if c.guards() && c.deletion.protection.MaxDependents == nil && !c.onTrial() && c.about(pods) && c.objects == nil && len(c.names) == 0 && len(c.conditions) == 0 {
		c.warn("spec.protection", "pods that are collected with their Job or ReplicaSet are kept, too, and "+
			"lose their owner: "+
			"a Job that its controller deletes leaves its pods. Set an objectSelector, or inCascades to Ignore")
	}
}
