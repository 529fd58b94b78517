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

// TestPendingNamesWhoRefuses: what the collector is refused does not wait for the collector.
func TestPendingNamesWhoRefuses(t *testing.T) {
	w := newTown(t)
	w.put("owner", "", ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [foregroundDeletion]")
	w.api.Put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: below, namespace: shop, uid: below, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: uid-owner, blockOwnerDeletion: true}]}}")
	w.api.Put("events", `{apiVersion: v1, kind: Event, metadata: {name: e, namespace: shop}, reason: CollectionRefused, source: {component: weir}, involvedObject: {uid: below},
		message: 'cannot delete it: admission webhook "guard.example.com" denied the request: no'}`)
	for _, args := range []string{"pending -n shop", "pending -A"} {
		got := w.run(strings.Fields(args)...)
		if got.failed != nil || !strings.HasPrefix(got.out, "1 waits for who runs the admission webhook guard.example.com:\n  configmaps/shop/owner for ") {
			t.Errorf("%s: %v\n%s%s", args, got.failed, got.out, got.err)
		}
	}
	w.refuse("/events", 403, "Forbidden", "you may not")
	if got := w.run("pending", "-n", "shop"); !strings.HasPrefix(got.out, "1 waits for the garbage collector:\n") || !strings.Contains(got.err, "incomplete: events in the namespace shop could not be read") {
		t.Errorf("%s%s", got.out, got.err)
	}
}
