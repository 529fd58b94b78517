package enforce

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// served holds the resources that discovery found, and the groups that did not answer.
type served struct {
	resources map[schema.GroupResource]bool
	anyGroup  map[string]bool // by the name of a resource
	silent    []string
}

// servedNow returns what is served; nil before anything is known.
func servedNow(s *follow.Store, undiscovered []string) *served {
	out := &served{resources: map[schema.GroupResource]bool{}, anyGroup: map[string]bool{}}
	for _, k := range s.Stats().Kinds {
		if k.Served {
			out.resources[k.GroupResource()] = true
			out.anyGroup[k.GroupResource().Resource] = true
		}
	}
	if len(out.resources) == 0 {
		return nil
	}
	for _, gv := range undiscovered {
		group, _, _ := strings.Cut(gv, "/")
		out.silent = append(out.silent, group)
	}
	return out
}

// mostNamed is how many resources a condition names.
const mostNamed = 5

// resolved returns the condition Resolved, if anything is known.
func (v *served) resolved(names []policies.Name, generation int64) (c metav1.Condition, known bool) {
	c = metav1.Condition{Type: v1beta1.ConditionResolved, ObservedGeneration: generation, Status: metav1.ConditionTrue,
		Reason: v1beta1.ReasonServed, Message: "every resource that the policy names is served"}
	if v == nil {
		return c, false
	}
	var missing, unknown []string
	for _, n := range names {
		if len(n.Groups) == 0 {
			continue // no group has nothing to serve
		}
		what := fmt.Sprintf("%s (%s)", n.Field, schema.GroupResource{Group: n.Groups[0], Resource: n.Resource})
		switch {
		case v.serves(n):
		case slices.Contains(n.Groups, "*") && len(v.silent) > 0,
			slices.ContainsFunc(n.Groups, func(g string) bool { return slices.Contains(v.silent, g) }):
			unknown = append(unknown, what)
		default:
			missing = append(missing, what)
		}
	}
	switch {
	case len(missing) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, v1beta1.ReasonNotServed
		c.Message = "no API serves " + some(missing) + ": names are plurals, as kubectl api-resources shows them; if a " +
			"CustomResourceDefinition is yet to come, the policy holds when it is there"
	case len(unknown) > 0:
		c.Status, c.Reason = metav1.ConditionUnknown, v1beta1.ReasonNotDiscovered
		c.Message = "an API that does not answer may serve " + some(unknown)
	}
	return c, true
}

func (v *served) serves(n policies.Name) bool {
	return slices.ContainsFunc(n.Groups, func(g string) bool {
		return g == "*" && v.anyGroup[n.Resource] || v.resources[schema.GroupResource{Group: g, Resource: n.Resource}]
	})
}

func some(list []string) string {
	if len(list) > mostNamed {
		return strings.Join(list[:mostNamed], ", ") + fmt.Sprintf(" and %d more", len(list)-mostNamed)
	}
	return strings.Join(list, ", ")
}
