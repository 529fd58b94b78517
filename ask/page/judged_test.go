package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// governed is a town with a policy that refuses a delete by which more than one object would also
// be deleted, and whose API server says who asks.
func governed(t *testing.T) *town {
	t.Helper()
	down := &atomic.Bool{}
	w := newTownOf(t, func(r apitest.Request) *apitest.Reply {
		verbs := metav1.Verbs{"list", "watch", "get"}
		group, version := v1beta1.GroupVersion.Group, v1beta1.GroupVersion.String()
		switch {
		case r.Path == "/apis":
			served := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: v1beta1.GroupVersion.Version}
			return &apitest.Reply{Code: 200, Body: metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: group, Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served}}}}
		case r.Path == "/apis/"+version:
			return &apitest.Reply{Code: 200, Body: metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{{Name: "deletionpolicies", Kind: "DeletionPolicy", Verbs: verbs}}}}
		case strings.HasSuffix(r.Path, "/deletionpolicies") && down.Load():
			return apitest.Refuse(http.StatusInternalServerError, "InternalError", "for a moment")
		case strings.HasSuffix(r.Path, "/selfsubjectreviews"):
			return &apitest.Reply{Code: 201, Body: map[string]any{
				"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "status": map[string]any{"userInfo": map[string]any{"username": "anna"}},
			}}
		}
		return discovered(r)
	})
	w.api.Put("deletionpolicies", `{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: few, uid: few}, spec: {
		match: {resources: [{apiGroups: [''], resources: [configmaps]}]}, protection: {maxDependents: 1}}}`)
	w.Policies, w.policiesDown = (&snapshot.Reader{Config: w.api.Config()}).Policies, down
	return w
}

// TestAPlanThatCouldNotAskPoliciesIsMadeAgain: that they could not be read for a moment is no
// answer for the next one, nor is the question of who went away.
func TestAPlanThatCouldNotAskPoliciesIsMadeAgain(t *testing.T) {
	w := governed(t)
	verdicts := func() string {
		return fmt.Sprint(w.ask(http.StatusOK, "plan", append([]string{"cascade", "background"}, boss...)...)["verdicts"])
	}
	w.policiesDown.Store(true)
	if said := verdicts(); strings.Contains(said, "few") {
		t.Fatalf("policies were read: %s", said)
	}
	w.policiesDown.Store(false)
	if said := verdicts(); !strings.Contains(said, "few") {
		t.Errorf("the verdicts, when policies can be read again: %s", said)
	}

	w.plans = nil
	asked, goAway := context.WithCancel(t.Context())
	w.Policies = func(context.Context, *insight.World) (*snapshot.Policies, error) {
		goAway()
		return nil, nil
	}
	_, err := w.plan(asked, url.Values{"kind": {"configmaps"}, "namespace": {"shop"}, "name": {"boss"}, "cascade": {"background"}})
	if !errors.Is(err, context.Canceled) || len(w.plans) > 0 {
		t.Errorf("%v, and %d plans are kept, want none", err, len(w.plans))
	}
}

// TestPlansSayWhatPoliciesSay: what is refused is said beside what would go, and one that policies
// judged is made again when it is asked for, since they may look at what no watch shows.
func TestPlansSayWhatPoliciesSay(t *testing.T) {
	w := governed(t)
	plan := func(name string) (id, verdicts string) {
		said := w.ask(http.StatusOK, "plan", "kind", "configmaps", "namespace", "shop", "name", name, "cascade", "background")
		return fmt.Sprint(said["id"]), fmt.Sprint(said["verdicts"])
	}
	first, refused := plan("boss")
	if !strings.Contains(refused, "few") || !strings.Contains(refused, "2 objects would also be deleted") {
		t.Errorf("the verdicts of what is refused: %s", refused)
	}
	if _, free := plan("leaf"); strings.Contains(free, "few") {
		t.Errorf("the verdicts of what is not: %s", free)
	}
	if again, _ := plan("boss"); again == first {
		t.Error("policies were not asked again")
	}
	w.ask(http.StatusNoContent, "plan", append([]string{"cascade", "background", "have", last(w).id}, boss...)...) // until the user asks
}

// TestPlansDoubtWhatIsNotFollowed: where one namespace is followed, what is in others may be more
// than policies accept.
func TestPlansDoubtWhatIsNotFollowed(t *testing.T) {
	w := governed(t)
	w.api.Put("namespaces", `{apiVersion: v1, kind: Namespace, metadata: {name: prod, uid: prod}}`)
	w.Follower = follow(t, w.api.Config(), "shop")
	t.Cleanup(w.Follower.Close)
	w.Follower.Listed(t.Context())
	w.reads = func() (*unstructured.Unstructured, error) {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "prod", "uid": "prod"}}}, nil
	}
	said := w.ask(http.StatusOK, "plan", "kind", "namespaces", "name", "prod", "cascade", "background")
	if verdicts := fmt.Sprint(said["verdicts"]); !strings.Contains(verdicts, `doubt:only the namespace "shop" is followed`) {
		t.Errorf("the verdicts: %s", verdicts)
	}
	if summary := fmt.Sprint(said["summary"]); !strings.Contains(summary, "Incomplete") {
		t.Errorf("the summary: %s", summary)
	}
}

// TestPlansDoubtWhatPoliciesCannotBeAskedAbout: that an object cannot be read is said, and is not
// taken for a yes.
func TestPlansDoubtWhatPoliciesCannotBeAskedAbout(t *testing.T) {
	w := governed(t)
	w.reads = func() (*unstructured.Unstructured, error) { return nil, errors.New("you may not read it") }
	said := w.ask(http.StatusOK, "plan", append([]string{"cascade", "background"}, boss...)...)
	if verdicts := fmt.Sprint(said["verdicts"]); !strings.Contains(verdicts, "you may not read it") || strings.Contains(verdicts, "would also be deleted") {
		t.Errorf("the verdicts: %s", verdicts)
	}
	w.reads = func() (*unstructured.Unstructured, error) {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "another"}}}, nil
	}
	w.ask(http.StatusNotFound, "plan", append([]string{"cascade", "background"}, boss...)...)
}

// TestFactsAreAskedOfWhatWasRead: why an object is as it is rests on the object as it is now, in
// the namespace that it is in.
func TestFactsAreAskedOfWhatWasRead(t *testing.T) {
	w := newTown(t)
	var asked []string
	w.Facts = func(_ context.Context, of *insight.World, gvr schema.GroupVersionResource, u *unstructured.Unstructured) insight.Facts {
		asked = append(asked, fmt.Sprintf("%s %s/%s in %s", gvr.Resource, u.GetNamespace(), u.GetName(), of.Asked))
		return insight.Facts{}
	}
	w.ask(http.StatusOK, "object", boss...)
	if len(asked) != 1 || asked[0] != "configmaps shop/boss in shop" {
		t.Errorf("facts were asked of %q", asked)
	}
}

// last is the youngest plan that is kept.
func last(w *town) *outline {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plans[len(w.plans)-1]
}
