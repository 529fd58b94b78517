package policies

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// Without a cluster it is not known which resources there are. But those of Kubernetes itself have
// had their names for years, and what people write for them is always the same: the singular,
// kubectl's short name, or another group.

// wellKnown are resources of Kubernetes' own groups, each with its short names.
var wellKnown = map[string]string{
	"": "pods:po services:svc configmaps:cm secrets namespaces:ns nodes:no persistentvolumeclaims:pvc persistentvolumes:pv " +
		"serviceaccounts:sa replicationcontrollers:rc endpoints:ep events:ev limitranges:limits resourcequotas:quota podtemplates",
	"apps":                      "deployments:deploy replicasets:rs statefulsets:sts daemonsets:ds controllerrevisions",
	"batch":                     "jobs cronjobs:cj",
	"autoscaling":               "horizontalpodautoscalers:hpa",
	"policy":                    "poddisruptionbudgets:pdb",
	"networking.k8s.io":         "ingresses:ing ingressclasses networkpolicies:netpol",
	"rbac.authorization.k8s.io": "roles rolebindings clusterroles clusterrolebindings",
	"storage.k8s.io":            "storageclasses:sc volumeattachments csidrivers csinodes csistoragecapacities",
	"scheduling.k8s.io":         "priorityclasses:pc",
	"discovery.k8s.io":          "endpointslices",
	"coordination.k8s.io":       "leases",
	"apiextensions.k8s.io":      "customresourcedefinitions:crd:crds",
}

// clusterScoped are those of them that are in no namespace, and so cannot depend on what is in one.
var clusterScoped = []string{"namespaces", "nodes", "persistentvolumes", "ingressclasses", "clusterroles", "clusterrolebindings",
	"storageclasses", "volumeattachments", "csidrivers", "csinodes", "priorityclasses", "customresourcedefinitions"}

// nameTable are the resources, and what else they are called, group by group.
type nameTable struct {
	resources map[schema.GroupResource]bool
	meant     map[schema.GroupResource]string // what is written, by what is meant
	groups    map[string][]string             // of a resource
}

var knownNames = sync.OnceValue(func() *nameTable {
	n := &nameTable{resources: map[schema.GroupResource]bool{}, meant: map[schema.GroupResource]string{}, groups: map[string][]string{}}
	for group, list := range wellKnown {
		for _, entry := range strings.Fields(list) {
			parts := strings.Split(entry, ":")
			resource := parts[0]
			n.resources[schema.GroupResource{Group: group, Resource: resource}] = true
			n.groups[resource] = append(n.groups[resource], group)
			for _, alias := range append(parts[1:], singular(resource)) {
				n.meant[schema.GroupResource{Group: group, Resource: alias}] = resource
			}
		}
	}
	return n
})

func singular(plural string) string {
	for _, ending := range []struct{ of, to string }{{"ies", "y"}, {"sses", "ss"}, {"s", ""}} {
		if stem, ok := strings.CutSuffix(plural, ending.of); ok {
			return stem + ending.to
		}
	}
	return plural
}

// checkResources gathers the resources that a policy names, and finds those that no API server will
// ever serve.
func (c *compiled) checkResources(rules []v1beta1.ResourceRule, at *field.Path) {
	for i, r := range rules {
		c.checkResource(r, at.Index(i))
	}
}

func (c *compiled) checkResource(r v1beta1.ResourceRule, at *field.Path) {
	for j, resource := range r.Resources {
		if resource != "*" && len(r.APIGroups) > 0 { // a rule without groups the schema refuses, and a file that has one is read all the same
			c.mentions = append(c.mentions, Name{at.Child("resources").Index(j).String(), r.APIGroups, resource})
		}
		if why := knownNames().wrong(r.APIGroups, resource); why != "" {
			c.mistake(at.Child("resources").Index(j).String(), why)
		}
	}
}

// wrong says why no group of a rule serves a resource; empty where one does, or might. A rule is
// about every resource in every group, so one group is enough.
func (n *nameTable) wrong(groups []string, resource string) string {
	why := ""
	for _, g := range groups {
		gr := schema.GroupResource{Group: g, Resource: resource}
		if wellKnown[g] == "" || n.resources[gr] {
			return ""
		}
		if meant := n.meant[gr]; meant != "" && why == "" {
			why = fmt.Sprintf("there are no %s in API group %q: write %s", resource, g, meant)
		}
	}
	if elsewhere := n.groups[resource]; why == "" && len(groups) > 0 && len(elsewhere) > 0 {
		why = fmt.Sprintf("there are no %s in API group %q: they are in %q", resource, groups[0], elsewhere[0])
	}
	return why
}

// passedOver are dependents that a resource never has directly: something is between, and decides
// about them.
var passedOver = map[schema.GroupResource]map[schema.GroupResource]string{
	{Group: "apps", Resource: "deployments"}: {{Resource: "pods"}: "replicasets"},
	{Group: "batch", Resource: "cronjobs"}:   {{Resource: "pods"}: "jobs"},
}

// checkDependents finds rules about dependents that can never be.
func (c *compiled) checkDependents(p *v1beta1.Propagation) {
	owners := explicit(c.resources)
	if len(owners) == 0 || wildcard(c.resources) {
		return
	}
	for i, r := range p.Dependents {
		at := fmt.Sprintf("spec.propagation.dependents[%d].resources", i)
		for _, dependent := range explicit([]v1beta1.ResourceRule{r.ResourceRule}) {
			switch {
			case !knownNames().resources[dependent]:
			case slices.Contains(clusterScoped, dependent.Resource) && !slices.ContainsFunc(owners, maybeClusterScoped):
				c.mistake(at, fmt.Sprintf("%s are in no namespace, and cannot depend on an object that is in one", dependent))
			case !slices.ContainsFunc(owners, func(o schema.GroupResource) bool { return passedOver[o][dependent] == "" }):
				c.warn(at, fmt.Sprintf("%s do not depend on %s directly: name %s", dependent, owners[0], passedOver[owners[0]][dependent]))
			}
		}
	}
}

func maybeClusterScoped(gr schema.GroupResource) bool {
	return !knownNames().resources[gr] || slices.Contains(clusterScoped, gr.Resource)
}
