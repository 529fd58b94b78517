package webhook

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/policies"
)

// TestABrakeThatHoldsNothingSaysSo: by an error, which the failurePolicy lets pass, and which is
// counted and logged.
func TestABrakeThatHoldsNothingSaysSo(t *testing.T) {
	q := policies.Question{Operation: policies.Delete,
		Resource:  schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		OldObject: map[string]any{"metadata": map[string]any{"uid": "held"}}}
	a := brake(nil)(httptest.NewRequest(http.MethodPost, "/", nil), q)
	if a.err == nil || !strings.Contains(a.err.Error(), "--brake-users") {
		t.Errorf("%v", a.err)
	}
}

// TestBrakeRefusesWhatIsHeldAndNothingElse: what is held is refused so that a collector tries it
// again by itself, and no worker of it waits.
func TestBrakeRefusesWhatIsHeldAndNothingElse(t *testing.T) {
	held := func(_ context.Context, uid types.UID) string {
		if uid == "held" {
			return "too much would go"
		}
		return ""
	}
	pod := func(uid string) policies.Question {
		return policies.Question{Operation: policies.Delete,
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: "x", Name: "p",
			OldObject: map[string]any{"metadata": map[string]any{"name": "p", "namespace": "x", "uid": uid}}}
	}
	tried := pod("held")
	tried.DryRun = true
	canary := pod("held")
	canary.Resource.Resource, canary.Name = "configmaps", "weir-collector-canary"
	eviction := pod("held")
	eviction.Subresource = "eviction"
	for name, c := range map[string]struct {
		question policies.Question
		brake    Brake
		refused  bool
	}{
		"held":                         {pod("held"), held, true},
		"not held":                     {pod("other"), held, false},
		"a review without an object":   {policies.Question{Operation: policies.Delete}, held, false},
		"only tried":                   {tried, held, false},
		"the canary of the collector":  {canary, held, false},
		"something else than a delete": {eviction, held, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := brake(c.brake)(httptest.NewRequest(http.MethodPost, "/", nil), c.question)
			switch r := a.response; {
			case a.err != nil:
				t.Error(a.err)
			case r.Allowed == c.refused:
				t.Errorf("allowed is %t", r.Allowed)
			case c.refused && (r.Result.Code != http.StatusTooManyRequests || r.Result.Message != "too much would go" ||
				r.Result.Details != nil):
				t.Errorf("refused with %+v", r.Result)
			}
		})
	}
}
