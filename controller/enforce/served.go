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

// served holds the resources that discovery found, each also with the group '*', and the groups
// that did not answer, with the resource '*'; nil before anything is known.
type served map[schema.GroupResource]bool

func servedNow(s *follow.Store, undiscovered []string) served {
	out := served{}
	for _, k := range s.Stats().Kinds {
		if k.Served {
			out[k.GroupResource()] = true
			out[schema.GroupResource{Group: "*", Resource: k.GroupResource().Resource}] = true
		}
	}
	if len(out) == 0 {
		return nil
	}
	for _, gv := range undiscovered {
		group, _, _ := strings.Cut(gv, "/")
		out[schema.GroupResource{Group: group, Resource: "*"}] = true
		out[schema.GroupResource{Group: "*", Resource: "*"}] = true
	}
	return out
}

// mostNamed is how many resources a condition names.
const mostNamed = 5

// resolved returns the condition Resolved, if anything is known. What an API may serve that does
// not answer is not said to be missing.
func (v served) resolved(names []policies.Name) reach {
	if v == nil {
		return reach{}
	}
	var missing []string
	for _, n := range names {
		if !slices.ContainsFunc(n.Groups, func(g string) bool {
			return v[schema.GroupResource{Group: g, Resource: n.Resource}] || v[schema.GroupResource{Group: g, Resource: "*"}]
		}) {
			missing = append(missing, fmt.Sprintf("%s (%s)", n.Field,
				schema.GroupResource{Group: n.Groups[0], Resource: n.Resource}))
		}
	}
	if len(missing) > 0 {
		return reach{metav1.ConditionFalse, v1beta1.ReasonNotServed, "no API serves " + some(missing) + ": names are " +
			"plurals, as kubectl api-resources shows them; if a CustomResourceDefinition is yet to come, the policy holds " +
			"when it is there"}
	}
	return reach{metav1.ConditionTrue, v1beta1.ReasonServed, "every resource that the policy names is served"}
}

func some(list []string) string {
	if len(list) > mostNamed {
		return strings.Join(list[:mostNamed], ", ") + fmt.Sprintf(" and %d more", len(list)-mostNamed)
	}
	return strings.Join(list, ", ")
}
