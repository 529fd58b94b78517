package chart_test

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A right is something that one of Weir's accounts may do, or may not.
type right struct {
	account, verb, group, resource, namespace, name string
}

// rights are those of a mode: docs/security.md says the same with reasons.
type rights struct{ may, mayNot []right }

var (
	shadow = rights{
		may: []right{
			{"weir-controller", "watch", "example.com", "anything", "", ""},
			{"weir-controller", "list", "", "pods", "", ""},
			{"weir-controller", "create", "authentication.k8s.io", "tokenreviews", "", ""},
		},
		mayNot: append([]right{
			{"weir-controller", "patch", "apps", "deployments", "default", ""},
			{"weir-controller", "delete", "", "pods", "default", ""},
			{"weir-controller", "create", "", "events", "default", ""},
			{"weir-controller", "update", "coordination.k8s.io", "leases", namespace, "weir-controller"},
			{"weir-controller", "create", "", "configmaps", namespace, ""},
			{"weir-controller", "update", "", "secrets", namespace, "weir-ca"},
			{"weir-controller", "create", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", ""},
			{"weir-webhook", "patch", "apps", "deployments", "default", ""},
		}, common.mayNot...),
	}
	companion = rights{
		may: append([]right{
			{"weir-controller", "delete", "", "pods", "default", ""},
			{"weir-controller", "patch", "", "namespaces/status", "", "default"},
		}, common.may...),
		mayNot: append([]right{
			{"weir-controller", "update", "", "namespaces/finalize", "", "default"},
			{"weir-controller", "deletecollection", "", "pods", "default", ""},
		}, common.mayNot...),
	}
	replace = rights{
		may: append([]right{
			{"weir-controller", "delete", "", "pods", "default", ""},
			{"weir-controller", "deletecollection", "", "pods", "default", ""},
			{"weir-controller", "get", "", "configmaps", namespace, "weir-deleted-owners"},
			{"weir-controller", "patch", "", "configmaps", namespace, "weir-deleted-owners"},
			{"weir-controller", "update", "", "namespaces/finalize", "", "default"},
			{"weir-controller", "update", "", "namespaces/status", "", "default"},
			{"weir-controller", "list", "coordination.k8s.io", "leases", "kube-system", ""},
		}, common.may...),
		mayNot: common.mayNot,
	}
	common = rights{
		may: []right{
			{"weir-controller", "watch", "example.com", "anything", "", ""},
			{"weir-controller", "patch", "apps", "deployments", "default", ""},
			{"weir-controller", "update", "weir.dev", "deletionpolicies/status", "", ""},
			{"weir-controller", "create", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", ""},
			{"weir-controller", "update", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "weir"},
			{"weir-controller", "update", "coordination.k8s.io", "leases", namespace, "weir-controller"},
			{"weir-controller", "create", "events.k8s.io", "events", "default", ""},
			{"weir-controller", "create", "coordination.k8s.io", "leases", namespace, ""},
			{"weir-controller", "delete", "coordination.k8s.io", "leases", namespace, "weir-canary"},
			{"weir-controller", "patch", "coordination.k8s.io", "leases", namespace, "weir-canary"},
			{"weir-controller", "create", "", "configmaps", namespace, ""},
			{"weir-controller", "delete", "", "configmaps", namespace, "weir-collector-canary"},
			{"weir-controller", "patch", "", "configmaps", namespace, "weir-file-policies"},
			{"weir-controller", "get", "", "services", namespace, "weir-webhook"},
			{"weir-controller", "update", "", "secrets", namespace, "weir-ca"},
			{"weir-controller", "watch", "", "secrets", namespace, "weir-webhook-token"},
			{"weir-webhook", "watch", "example.com", "anything", "", ""},
			{"weir-webhook", "create", "", "events", "default", ""},
			{"weir-webhook", "patch", "", "events", "default", ""},
			{"weir-webhook", "patch", "apps", "deployments", "default", ""},
			{"weir-webhook", "create", "authorization.k8s.io", "subjectaccessreviews", "", ""},
			{"weir-webhook", "create", "authentication.k8s.io", "tokenreviews", "", ""},
			{"weir-webhook", "get", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "weir"},
			{"weir-webhook", "update", "", "secrets", namespace, "weir-ca"},
			{"weir-webhook", "watch", "", "secrets", namespace, "weir-webhook-token"},
		},
		mayNot: []right{
			{"weir-controller", "update", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "other"},
			{"weir-controller", "update", "", "secrets", namespace, "other"},
			{"weir-controller", "create", "", "secrets", "default", ""},
			{"weir-controller", "create", "", "configmaps", "default", ""},
			{"weir-controller", "create", "", "pods", "default", ""},
			{"weir-controller", "update", "apps", "deployments", "default", ""},
			{"weir-controller", "escalate", "rbac.authorization.k8s.io", "clusterroles", "", ""},
			{"weir-controller", "bind", "rbac.authorization.k8s.io", "clusterroles", "", ""},
			{"weir-controller", "impersonate", "", "users", "", ""},
			{"weir-controller", "create", "weir.dev", "deletionpolicies", "", ""},
			{"weir-webhook", "delete", "", "pods", "default", ""},
			{"weir-webhook", "update", "", "namespaces/finalize", "", "default"},
			{"weir-webhook", "create", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", ""},
			{"weir-webhook", "update", "", "secrets", namespace, "other"},
			{"weir-webhook", "update", "", "secrets", namespace, "weir-webhook-token"},
			{"weir-webhook", "update", "coordination.k8s.io", "leases", namespace, "weir-controller"},
			// Made by the hooks of Helm, and gone with them.
			{"weir-release", "patch", "apps", "deployments", "default", ""},
			// The same, of helm test.
			{"weir-test", "delete", "coordination.k8s.io", "leases", namespace, "weir-canary"},
		},
	}
)

func checkRights(t *testing.T, r rights) {
	t.Helper()
	for want, all := range map[bool][]right{true: r.may, false: r.mayNot} {
		for _, one := range all {
			if got := allowed(t, one); got != want {
				t.Errorf("%+v: allowed %t, want %t", one, got, want)
			}
		}
	}
}

func allowed(t *testing.T, r right) bool {
	t.Helper()
	resource, sub, _ := strings.Cut(r.resource, "/")
	got, err := shared.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:" + namespace + ":" + r.account,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: r.verb, Group: r.group, Resource: resource, Subresource: sub, Namespace: r.namespace, Name: r.name,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Status.Allowed
}
