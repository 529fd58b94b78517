package e2e

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// trees are the names of the durable trees of what was in the fixture's namespace, or is it, by
// KIND NAME of their roots.
func (w *fixture) trees() map[string][]string {
	w.Helper()
	list, err := w.dynamic.Resource(deletedTrees).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	out := map[string][]string{}
	for i := range list.Items {
		tree := &list.Items[i]
		root, _, _ := unstructured.NestedStringMap(tree.Object, "spec", "root")
		durable := slices.ContainsFunc(conditionsOf(tree), func(c metav1.Condition) bool { return c.Status == metav1.ConditionTrue })
		if durable && (root["namespace"] == w.namespace || root["name"] == w.namespace) {
			name := root["kind"] + " " + root["name"]
			out[name] = append(out[name], tree.GetName())
		}
	}
	return out
}
