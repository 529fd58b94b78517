package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var pods = schema.GroupResource{Resource: "pods"}

// webhookSaysNo is how the API server passes on a refusal: the code and the reason are the webhook's.
func webhookSaysNo(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason,
		Message: `admission webhook "guard.example.com" denied the request: not today`,
	}}
}

// notServed is the 404 of a path that no API server knows.
var notServed = apierrors.NewGenericServerResponse(404, "GET", pods, "web", "404 page not found", 0, true)

func TestOutcomeOfARequest(t *testing.T) {
	tests := []struct {
		err  error
		want outcome
	}{
		{nil, ok},
		{apierrors.NewConflict(pods, "web", errors.New("changed")), stale},
		{apierrors.NewNotFound(pods, "web"), gone},
		{apierrors.NewTooManyRequests("busy", 1), throttled},
		{fmt.Errorf("delete it: %w", &busyError{pods, "hang"}), throttled},
		{apierrors.NewForbidden(pods, "web", errors.New("RBAC")), refused},
		{apierrors.NewInternalError(errors.New("etcd")), failed},
		{errors.New("connection refused"), failed},
		{fmt.Errorf("wait for a place: %w", context.Canceled), cancelled},
		{errNoEffect, refused},
		{webhookSaysNo(403, metav1.StatusReasonForbidden), refused},
		{webhookSaysNo(404, metav1.StatusReasonNotFound), refused},
		{webhookSaysNo(409, metav1.StatusReasonConflict), refused},
		{webhookSaysNo(500, metav1.StatusReasonInternalError), refused},
		{webhookSaysNo(429, metav1.StatusReasonTooManyRequests), throttled},
	}
	for _, tc := range tests {
		if got := outcomeOf(tc.err); got != tc.want {
			t.Errorf("%v: outcome %q, want %q", tc.err, got, tc.want)
		}
	}
}

// A 404 proves absence only if an API server that knows the kind says that it has no such object.
func TestOnlyOneKindOf404ProvesAbsence(t *testing.T) {
	tests := map[string]struct {
		err  error
		want bool
	}{
		"no such object":                      {apierrors.NewNotFound(pods, "web"), true},
		"another object":                      {apierrors.NewNotFound(pods, "other"), false},
		"another kind":                        {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "web"), false},
		"another group":                       {apierrors.NewNotFound(schema.GroupResource{Group: "metrics.k8s.io", Resource: "pods"}, "web"), false},
		"path not served":                     {notServed, false},
		"no details":                          {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound}}, false},
		"webhook's colour":                    {webhookSaysNo(404, metav1.StatusReasonNotFound), false},
		"gone is for expired lists":           {apierrors.NewResourceExpired("too old"), false},
		"not allowed to know":                 {apierrors.NewForbidden(pods, "web", nil), false},
		"no answer":                           {context.DeadlineExceeded, false},
		"no error is no proof of absence too": {nil, false},
	}
	for name, tc := range tests {
		if got := noSuchObject(tc.err, pods, "web"); got != tc.want {
			t.Errorf("%s: proves absence: %t, want %t", name, got, tc.want)
		}
	}
}
