package ask

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPlanOfAnOperatorAndItsResourcesTellsOfTheDeadlock: what is to take a finalizer off goes before what carries it.
func TestPlanOfAnOperatorAndItsResourcesTellsOfTheDeadlock(t *testing.T) {
	w := newTown(t)
	w.groups = map[string][]metav1.APIResource{"apps/v1": {{Name: "deployments", SingularName: "deployment", Kind: "Deployment", Namespaced: true, Verbs: metav1.Verbs{"list", "watch", "get", "delete"}}}}
	w.api.Put("deployments", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: keeper, namespace: shop}, spec: {template: {spec: {containers: [{name: c, image: example.com/keeper-operator}]}}}}")
	w.put("kept", "", ", finalizers: [example.com/keeper], managedFields: [{manager: keeper-operator, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {f:metadata: {f:finalizers: {'v:\"example.com/keeper\"': {}}}}}]")
	const told = `deployments.apps/keeper, which runs something that is named "keeper-operator", is deleted before that: nothing may be left that removes it`
	for args, want := range map[string]bool{
		"plan cm/kept deployment/keeper -n shop": true,
		"plan deployment/keeper cm/kept -n shop": true,
		"plan namespace shop":                    true,
		"plan cm kept -n shop":                   false,
	} {
		got := w.run(strings.Fields(args)...)
		if got.failed != nil || strings.Contains(got.out, told) != want {
			t.Errorf("%s: %v, want %v\n%s%v", args, !want, want, got.out, got.failed)
		}
	}
}
