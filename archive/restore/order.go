package restore

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	namespaces  = schema.GroupResource{Resource: "namespaces"}
	services    = schema.GroupResource{Resource: "services"}
	pods        = schema.GroupResource{Resource: "pods"}
	claims      = schema.GroupResource{Resource: "persistentvolumeclaims"}
	volumes     = schema.GroupResource{Resource: "persistentvolumes"}
	jobs        = schema.GroupResource{Group: "batch", Resource: "jobs"}
)

// ranks is the order of kinds where owners do not decide. What others name comes first: pods would
// run without a NetworkPolicy or the defaults of a LimitRange that comes later. What may refuse
// others comes last.
var ranks = func() map[schema.GroupResource]int {
	ranks := map[schema.GroupResource]int{}
	for rank, kinds := range [][]string{
		{"customresourcedefinitions.apiextensions.k8s.io"},
		{"namespaces"},
		{"clusterroles.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io"},
		{"clusterrolebindings.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"},
		{"serviceaccounts", "priorityclasses.scheduling.k8s.io", "storageclasses.storage.k8s.io",
			"runtimeclasses.node.k8s.io"},
		{"secrets", "configmaps", "limitranges", "networkpolicies.networking.k8s.io"},
		{"persistentvolumes"},
		{"persistentvolumeclaims", "services"},
		{""}, // the rest
		{"resourcequotas"},
		{"apiservices.apiregistration.k8s.io",
			"validatingadmissionpolicies.admissionregistration.k8s.io",
			"mutatingadmissionpolicies.admissionregistration.k8s.io"},
		{"validatingwebhookconfigurations.admissionregistration.k8s.io",
			"mutatingwebhookconfigurations.admissionregistration.k8s.io",
			"validatingadmissionpolicybindings.admissionregistration.k8s.io",
			"mutatingadmissionpolicybindings.admissionregistration.k8s.io"},
	} {
		for _, k := range kinds {
			ranks[schema.ParseGroupResource(k)] = rank
		}
	}
	return ranks
}()

func rankOf(kind schema.GroupResource) int {
	if rank, ok := ranks[kind]; ok {
		return rank
	}
	return ranks[schema.GroupResource{}]
}

// visit is how far the ordering of an item is.
type visit int

const (
	unvisited visit = iota
	visiting
	visited
)

// ordered returns each step after those that it needs. An owner comes first, with two exceptions,
// in which the reference to it is added at the end. A cycle of owners is cut at the object that is
// met first. And an owner of a later rank waits: a claim, a Secret, or whatever else others name
// must be there before a StatefulSet or an operator would make a new, empty one.
func (p *planning) ordered() []*Step {
	for n, i := range p.items {
		if n > 0 && rankOf(i.ref.Kind) != rankOf(p.items[n-1].ref.Kind) {
			p.floor = p.top + 1
		}
		p.visit(i)
	}
	slices.SortStableFunc(p.out, func(a, b *Step) int { return a.Level - b.Level })
	for _, s := range p.last {
		s.Level = p.top + 1
	}
	return append(p.out, p.last...)
}

func (p *planning) visit(i *item) {
	if i.state != unvisited || i.step == nil {
		return
	}
	for _, need := range i.needs {
		if need.state == visiting {
			return // it owns its own definition or namespace, and comes after that
		}
		p.visit(need)
	}
	i.state = visiting
	for _, owner := range i.owners {
		if rankOf(owner.ref.Kind) <= rankOf(i.ref.Kind) {
			p.visit(owner)
		}
	}
	i.state = visited
	s := i.step
	var later []Link
	s.Links = slices.DeleteFunc(s.Links, func(l Link) bool {
		if p.byRef[l.Owner].state == visited && l.Owner != i.ref {
			return false
		}
		later = append(later, l)
		return true
	})
	i.level = p.floor
	for _, before := range i.needs {
		i.level = max(i.level, before.level+1)
	}
	for _, l := range s.Links {
		i.level = max(i.level, p.byRef[l.Owner].level+1)
	}
	s.Level, p.top = i.level, max(p.top, i.level)
	p.out = append(p.out, s)
	if len(later) > 0 {
		last := &Step{Ref: s.Ref, Version: s.Version, UID: s.UID, Outcome: Patch,
			Why: "now that all else is there", Links: later}
		if s.Outcome == Patch { // the whole patch moves to the end
			last.References, last.Links = s.References, append(s.Links, later...)
			last.Status, last.Managers = s.Status, s.Managers
			s.References, s.Links, s.Status, s.Managers = nil, nil, nil, nil
			s.Outcome, s.Why = There, restored
		}
		p.last = append(p.last, last)
	}
}
