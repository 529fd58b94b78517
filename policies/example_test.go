package policies_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies"
)

// A policy protects namespaces, and a user deletes one.
func ExampleSet_Decide() {
	sources, problems := policies.Parse("protect.yaml", []byte(`
apiVersion: weir.dev/v1beta1
kind: DeletionPolicy
metadata: {name: namespaces}
spec:
  match: {resources: [{apiGroups: [""], resources: [namespaces]}]}
  protection: {confirmation: Required}
`))
	if len(problems) > 0 {
		fmt.Println(problems)
	}
	set := policies.Build(nil, sources, policies.Options{})
	d := set.Decide(policies.Question{
		Operation: policies.Delete, User: policies.User{Name: "alice"}, Name: "shop",
		Kind:      schema.GroupVersionKind{Version: "v1", Kind: "Namespace"},
		Resource:  schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
		OldObject: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop", "uid": "4b1c"}},
	})
	fmt.Println(d.Allowed)
	fmt.Println(d.Message)
	// Output:
	// false
	// namespaces "shop" may not be deleted without confirmation (DeletionPolicy "namespaces"). To delete it, confirm and delete again: kubectl annotate namespaces shop --overwrite weir.dev/confirm-delete=4b1c
}
