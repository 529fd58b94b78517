package request

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// webhookSaysNo is how the API server passes on a refusal: the code and the reason are the
// webhook's.
func webhookSaysNo(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason,
		Message: `admission webhook "guard.example.com" denied the request: not today`,
	}}
}

// notServed is the 404 of a path that no API server knows.
var notServed = apierrors.NewGenericServerResponse(404, "GET", fixture.Pods, "web", "404 page not found", 0, true)

func TestOutcomeOfARequest(t *testing.T) {
	tests := []struct {
		err  error
		want Outcome
	}{
		{nil, OK},
		{apierrors.NewConflict(fixture.Pods, "web", errors.New("changed")), Stale},
		{apierrors.NewNotFound(fixture.Pods, "web"), Gone},
		{apierrors.NewTooManyRequests("busy", 1), Throttled},
		{fmt.Errorf("delete it: %w", &busyError{fixture.Pods, "hang"}), Throttled},
		{apierrors.NewForbidden(fixture.Pods, "web", errors.New("RBAC")), Refused},
		{apierrors.NewInternalError(errors.New("etcd")), Failed},
		{errors.New("connection refused"), Failed},
		{fmt.Errorf("wait for a place: %w", context.Canceled), Cancelled},
		{errNoEffect, Refused},
		{webhookSaysNo(403, metav1.StatusReasonForbidden), Refused},
		{webhookSaysNo(404, metav1.StatusReasonNotFound), Refused},
		{webhookSaysNo(409, metav1.StatusReasonConflict), Refused},
		{webhookSaysNo(500, metav1.StatusReasonInternalError), Refused},
		{webhookSaysNo(429, metav1.StatusReasonTooManyRequests), Throttled},
	}
	for _, tc := range tests {
		if got := OutcomeOf(tc.err); got != tc.want {
			t.Errorf("%v: outcome %q, want %q", tc.err, got, tc.want)
		}
	}
}

// What is in a namespace that is gone stays: that the namespace is not found says nothing of the
// object.
func TestObjectWhoseNamespaceIsGoneIsNotGone(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ghost")
	for ref, want := range map[graph.Ref]Outcome{
		{Kind: fixture.Pods, Namespace: "ghost", Name: "web"}:               Refused,
		{Kind: schema.GroupResource{Resource: "namespaces"}, Name: "ghost"}: Gone,
	} {
		if got := OutcomeAbout(ref, gone); got != want {
			t.Errorf("%s: %q, want %q", ref, got, want)
		}
	}
}

// A 404 proves absence only if an API server that knows the kind says that it has no such object.
func TestOnlyOneKindOf404ProvesAbsence(t *testing.T) {
	tests := map[string]struct {
		err  error
		want bool
	}{
		"no such object":                      {apierrors.NewNotFound(fixture.Pods, "web"), true},
		"another object":                      {apierrors.NewNotFound(fixture.Pods, "other"), false},
		"another kind":                        {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "web"), false},
		"another group":                       {apierrors.NewNotFound(schema.GroupResource{Group: "metrics.k8s.io", Resource: "pods"}, "web"), false},
		"path not served":                     {notServed, false},
		"no details":                          {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound}}, false},
		"webhook's colour":                    {webhookSaysNo(404, metav1.StatusReasonNotFound), false},
		"gone is for expired lists":           {apierrors.NewResourceExpired("too old"), false},
		"not allowed to know":                 {apierrors.NewForbidden(fixture.Pods, "web", nil), false},
		"no answer":                           {context.DeadlineExceeded, false},
		"no error is no proof of absence too": {nil, false},
	}
	for name, tc := range tests {
		if got := NoSuchObject(tc.err, fixture.Pods, "web"); got != tc.want {
			t.Errorf("%s: proves absence: %t, want %t", name, got, tc.want)
		}
	}
}
