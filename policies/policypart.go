package policies

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// Part is a part of the policies that is judged by itself, since something else happens to requests
// when it cannot be: an error among policies that are to be ignored then must not refuse for those
// that fail, and the other way round. The API server says by the path which of them it asks about.
// The zero value is all policies.
type Part string

// The parts. Each policy is in one of them.
const (
	PartIgnore Part = "ignore"
	// PartFail fails, but in namespaces that the cluster itself lives from.
	PartFail Part = "fail"
	// PartEverywhere fails in those, too: its policies name them.
	PartEverywhere Part = "everywhere"
)

// Parts are all of them.
var Parts = []Part{PartIgnore, PartFail, PartEverywhere}

// Path is where a part is judged of a webhook that is at a path.
func (p Part) Path(webhook string) string {
	if p == "" {
		return webhook
	}
	return webhook + "-" + string(p)
}

// systemNamespaces hold what a cluster needs to come up, and its nodes to be alive. While Weir is
// down nothing is refused there: it may be what Weir waits for.
var systemNamespaces = []string{metav1.NamespaceSystem, corev1.NamespaceNodeLease}

// whichPart is where a policy is judged. One that refuses nothing fails nothing, either.
func (c *compiled) whichPart() Part {
	switch {
	case c.failurePolicy != v1beta1.Fail || !c.refuses():
		return PartIgnore
	case c.namesSystemNamespaces():
		return PartEverywhere
	}
	return PartFail
}

func (p Part) has(c *compiled) bool { return p == "" || c.part == p }

// Refuses tells whether any policy of a part refuses anything: those on trial do not, nor do those
// that only change something.
func (s *Set) Refuses(p Part) bool {
	return slices.ContainsFunc(s.policies, func(c *compiled) bool { return p.has(c) && c.refuses() })
}

// namesSystemNamespaces tells whether a policy means them: its namespaceSelector asks for them by
// name.
func (c *compiled) namesSystemNamespaces() bool {
	if c.namespaces == nil {
		return false
	}
	requirements, _ := c.namespaces.Requirements()
	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return r.Key() == corev1.LabelMetadataName && oneOfValues(r) && slices.ContainsFunc(systemNamespaces, r.Values().Has)
	})
}

// warnOfRisk says what a policy that fails can stop while no process answers for it.
func (c *compiled) warnOfRisk() {
	if c.part == PartIgnore {
		return
	}
	ofPods := c.about(schema.GroupResource{Resource: "pods"})
	selects := c.namespaces != nil || c.objects != nil || len(c.names) > 0
	everything := slices.ContainsFunc(c.resources, func(r v1beta1.ResourceRule) bool { return slices.Contains(r.Resources, "*") })
	switch {
	case everything && !selects:
		c.risk = "while Weir does not answer, all requests about these API groups are refused, also those that the cluster itself needs: name resources, or select some objects"
	case ofPods:
		c.risk = "while Weir does not answer, requests about pods that the policy matches are refused, also about pods that Weir or the network needs: leave pods out, or set failurePolicy to Ignore"
	case c.part == PartEverywhere:
		c.risk = "while Weir does not answer, requests in kube-system or kube-node-lease are refused, which the cluster needs to come up"
	}
	if c.risk != "" {
		c.warn("spec.failurePolicy", c.risk)
	}
}

// lenient are the namespaces in which a part of those that fail does not. Weir's own always is one:
// a webhook that is down must not keep itself from coming up again.
func (s *Set) lenient(p Part) []string {
	var out []string
	if p == PartFail {
		out = slices.Clone(systemNamespaces)
	}
	if s.own != "" && p != PartIgnore {
		out = append(out, s.own)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// failsClosed tells whether a request is refused because a policy cannot be judged.
func (s *Set) failsClosed(c *compiled, q *Question) bool {
	p := c.part
	return p != PartIgnore && !slices.Contains(s.lenient(p), q.Namespace)
}
