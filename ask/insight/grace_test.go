package insight

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestPodsHaveTheirTimeToStop(t *testing.T) {
	pod := func(uid string, spec, status map[string]any) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": uid}, "spec": spec, "status": status}}
	}
	item := func(uid, kind, namespace string, outcome Outcome, deleting bool) *Item {
		return &Item{Object: Object{Kind: kind, Namespace: namespace, Name: uid, UID: types.UID(uid)}, Outcome: outcome, Deleting: deleting, Propagation: metav1.DeletePropagationBackground}
	}
	p := &Plan{Items: []*Item{
		item("runs", "pods", "x", Deleted, false), item("waits", "pods", "x", Deleted, false), item("over", "pods", "w", Deleted, false),
		item("unread", "pods", "x", Deleted, false), item("ending", "pods", "y", Deleted, true), item("kept", "pods", "z", Released, false),
		item("other", "pods.metrics.k8s.io", "v", Deleted, false),
	}}
	if got := p.PodNamespaces(); !slices.Equal(got, []string{"w", "x"}) {
		t.Errorf("pods are deleted in %q", got)
	}
	minute := map[string]any{"terminationGracePeriodSeconds": int64(60), "nodeName": "n"}
	p.Grace([]unstructured.Unstructured{
		pod("runs", minute, nil), pod("over", minute, map[string]any{"phase": "Succeeded"}), pod("ending", minute, nil), pod("kept", minute, nil), pod("other", minute, nil),
		pod("waits", map[string]any{"terminationGracePeriodSeconds": int64(60)}, map[string]any{"phase": "Pending"}), pod("unread", map[string]any{"nodeName": "n"}, nil),
	})
	for _, i := range p.Items {
		want := map[string]string{"runs": "60 up to 60s to stop", "waits": "0 ", "over": "0 "}[i.Name]
		got := ""
		if i.GracePeriodSeconds != nil {
			got = fmt.Sprint(*i.GracePeriodSeconds, " ", i.stopping())
		}
		if got != want {
			t.Errorf("%s: %q, want %q", i.Name, got, want)
		}
	}
}
