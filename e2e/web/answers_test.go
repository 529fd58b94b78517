//go:build web && full

package web_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// hold has an object terminate, and stay until the test is over.
func (w *fixture) hold(name string) {
	w.Helper()
	w.make(name, nil, "example.com/hold")
	w.delete(name, metav1.DeletePropagationBackground)
	w.Cleanup(func() {
		_, err := shared.client.Resource(configMaps).Namespace(w.namespace).Patch(context.WithoutCancel(w.Context()), name, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
		if err != nil {
			w.Error(err)
		}
	})
}

// TestWhyItIsStillThereIsAskedAgain: what tells why changes without a change of any object that the
// page follows.
func TestWhyItIsStillThereIsAskedAgain(t *testing.T) {
	w := newFixture(t)
	w.hold("stuck")
	stuck, err := shared.client.Resource(configMaps).Namespace(w.namespace).Get(t.Context(), "stuck", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, serve(t, shared.plane.Kubeconfig).url+w.place("stuck", ""))
	p.see("Why it is still there")
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": "held"}, "reason": "DeletionHeld", "message": "a person has to decide",
		"source": map[string]any{"component": "weir"}, "lastTimestamp": metav1.Now().UTC().Format("2006-01-02T15:04:05Z"),
		"involvedObject": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": w.namespace, "name": "stuck", "uid": string(stuck.GetUID())},
	}}
	if _, err := shared.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(w.namespace).Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.see("a person has to decide")
}
