package policies

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// Part is a part of the policies that is judged separately, because their failurePolicies differ:
// an error among policies with Ignore must not refuse for those with Fail, nor the other way round.
// The path of a request says which part the API server asks. The zero value is all policies.
type Part string

// The parts. Each policy is in exactly one.
const (
	PartIgnore Part = "ignore"
	// PartFail fails closed, except in the namespaces that the cluster itself needs.
	PartFail Part = "fail"
	// PartEverywhere fails closed in those, too: its policies name them.
	PartEverywhere Part = "everywhere"
)

// Parts are all parts.
var Parts = []Part{PartIgnore, PartFail, PartEverywhere}

// Path returns the path of a part of a webhook.
func (p Part) Path(webhook string) string {
	if p == "" {
		return webhook
	}
	return webhook + "-" + string(p)
}

// systemNamespaces contain what a cluster needs to start and to keep its nodes alive. While Weir is
// down nothing is refused there: Weir may wait for it.
var systemNamespaces = []string{metav1.NamespaceSystem, corev1.NamespaceNodeLease}

// whichPart returns the part of a policy. A policy that refuses nothing is in PartIgnore.
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

// Refuses reports whether a policy of the part refuses anything. Policies on trial, or that only
// change something, do not.
func (s *Set) Refuses(p Part) bool {
	return slices.ContainsFunc(s.policies, func(c *compiled) bool { return p.has(c) && c.refuses() })
}

// namesSystemNamespaces reports whether the policy's namespaceSelector names such a namespace.
func (c *compiled) namesSystemNamespaces() bool {
	if c.namespaces == nil {
		return false
	}
	requirements, _ := c.namespaces.Requirements()
	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return r.Key() == corev1.LabelMetadataName && oneOfValues(r) && slices.ContainsFunc(systemNamespaces, r.Values().Has)
	})
}

// warnOfRisk warns of what a policy with failurePolicy Fail can stop while no process answers.
func (c *compiled) warnOfRisk() {
	if c.part == PartIgnore {
		return
	}
	risk := ""
	selects := c.namespaces != nil || c.objects != nil || len(c.names) > 0
	everything := slices.ContainsFunc(c.resources,
		func(r v1beta1.ResourceRule) bool { return slices.Contains(r.Resources, "*") })
	switch {
	case everything && !selects:
		risk = "while Weir does not answer, all requests about these API groups are refused, also those that the " +
			"cluster itself needs: name resources, or select some objects"
	case c.about(pods):
		risk = "while Weir does not answer, requests about pods that the policy matches are refused, also about pods " +
			"that Weir or the network needs: leave pods out, or set failurePolicy to Ignore"
	case c.part == PartEverywhere:
		risk = "while Weir does not answer, requests in kube-system or kube-node-lease are refused, which the cluster " +
			"needs to come up"
	}
	if risk != "" {
		c.warn("spec.failurePolicy", risk)
	}
}

// lenient returns the namespaces in which a part does not fail closed. Weir's own always is one: a
// webhook that is down must not keep itself from coming up again.
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

// failsClosed reports whether a request is refused because a policy cannot be judged.
func (s *Set) failsClosed(c *compiled, q *Question) bool {
	p := c.part
	return p != PartIgnore && !slices.Contains(s.lenient(p), q.Namespace)
}
