package insight

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// placeOf is a cluster of objects: each is its kind, and the YAML of its metadata. Their uids are
// their names.
func placeOf(t *testing.T, objects string) *World {
	t.Helper()
	kinds := []graph.Resource{
		{Version: "v1", Resource: "namespaces", Kind: "Namespace"},
		{Version: "v1", Resource: "nodes", Kind: "Node"},
		{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true},
		{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims", Kind: "ResourceClaim", Namespaced: true},
		{Group: definitions.Group, Version: "v1", Resource: definitions.Resource, Kind: "CustomResourceDefinition"},
		{Group: "example.com", Version: "v1", Resource: "widgets", Kind: "Widget", Namespaced: true},
	}
	of := map[schema.GroupResource][]metav1.PartialObjectMetadata{}
	for line := range strings.Lines(objects) {
		kind, meta, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		var m metav1.PartialObjectMetadata
		meta = strings.ReplaceAll(meta, "DELETED", "deletionTimestamp: '2026-01-02T11:58:00Z'")
		if err := yaml.UnmarshalStrict([]byte("metadata: {"+meta+"}"), &m); err != nil {
			t.Fatal(line, err)
		}
		if m.UID == "" {
			m.UID = types.UID(m.Name)
		}
		gr := schema.ParseGroupResource(kind)
		of[gr] = append(of[gr], m)
	}
	for i := range kinds {
		k := &kinds[i]
		k.Versions, k.Collected, k.Deletable, k.Listable = []string{k.Version}, true, true, true
	}
	w := NewWorld("", kinds)
	for _, k := range kinds {
		w.List(k.GroupResource(), "1", of[k.GroupResource()])
	}
	return w
}

// wholeOf is an object of YAML.
func wholeOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestWhySaysWhatIsSo: each cause has the right one to act, and evidence that is about the object
// that it names.
func TestWhySaysWhatIsSo(t *testing.T) {
	held := wholeOf(t, `{metadata: {name: requested.configmaps}, status: {held: 1, samples: [{resource: configmaps, namespace: x, name: boss, why: 30 objects would also be deleted}]}}`)
	many := wholeOf(t, `{metadata: {name: requested.configmaps}, status: {held: 40, samples: [{resource: configmaps, namespace: x, name: other, why: other}]}}`)
	onHold := said(v1beta1.ReasonDeletionHeld, "boss", "boss", "the deletion is held until a person decides")
	const boss = "configmaps name: boss, namespace: x, DELETED, finalizers: [weir.dev/propagation]"
	const foreground = "configmaps name: boss, namespace: x, DELETED, finalizers: [foregroundDeletion]\n"
	const leaf = "configmaps name: leaf, namespace: x, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: boss, uid: boss, blockOwnerDeletion: true}]\n"
	const orphaning = "configmaps name: boss, namespace: x, DELETED, finalizers: [orphan]\n"
	const denied = `cannot delete it (why): admission webhook "guard.example.com" denied the request: not today`
	const old = "deployments.apps name: web, namespace: x\nconfigmaps name: c, namespace: x, ownerReferences: [{apiVersion: extensions/v1beta1, kind: Deployment, name: web, uid: web}]"
	for name, c := range map[string]struct {
		objects string
		uid     types.UID
		facts   Facts
		unread  string
		want    string
	}{
		"held by a brake": {boss, "boss", Facts{Held: held, Events: []corev1.Event{onHold}}, "", `
1. The finalizer weir.dev/propagation holds it: Weir's controller removes it when the propagation of the policy is carried out, which waits until a person decides: 30 objects would also be deleted.
   Who has to act: a person who decides.
   Evidence: the Event DeletionHeld on ConfigMap x/boss, 2m ago: the deletion is held until a person decides.
   To see more: kubectl get held requested.configmaps -o wide
`},
		"perhaps held by a brake": {boss, "boss", Facts{Held: many}, "", `
1. The finalizer weir.dev/propagation holds it: Weir's controller removes it when the propagation of the policy is carried out, which may wait until a person decides: 40 deletions of configmaps are held.
   Who has to act: a person who decides.
   To see more: kubectl get held requested.configmaps -o wide
`},
		"recorded before it goes": {boss, "boss", Facts{Enforcement: &Enforcement{Archive: "undo"}}, "", `
1. The finalizer weir.dev/propagation holds it: Weir's controller removes it when the propagation of the policy is carried out.
   Who has to act: Weir's controller.
   Evidence: policy undo has it recorded before it goes: kubectl weir deleted.
   To see more: kubectl get deletionpolicies.weir.dev -o wide
`},
		"an owner that waits for a namespace that is held": {"nodes name: host, DELETED, finalizers: [foregroundDeletion]\n" +
			"namespaces name: x, DELETED, ownerReferences: [{apiVersion: v1, kind: Node, name: host, uid: host, blockOwnerDeletion: true}]\n" +
			"configmaps name: c, namespace: x, DELETED, finalizers: [example.com/hold]", "host", Facts{}, "", `
1. Foreground deletion: it waits for namespaces/x.
   Who has to act: the component behind the finalizer example.com/hold.
   Evidence: configmaps/x/c has the finalizer example.com/hold.
   To see more: kubectl weir tree nodes host
`},
		"an owner that waits for a definition that is held": {"nodes name: host, DELETED, finalizers: [foregroundDeletion]\n" +
			"customresourcedefinitions.apiextensions.k8s.io name: widgets.example.com, DELETED, finalizers: [customresourcecleanup.apiextensions.k8s.io], ownerReferences: [{apiVersion: v1, kind: Node, name: host, uid: host, blockOwnerDeletion: true}]\n" +
			"widgets.example.com name: w, namespace: x, DELETED, finalizers: [example.com/hold]", "host", Facts{}, "", `
1. Foreground deletion: it waits for customresourcedefinitions.apiextensions.k8s.io/widgets.example.com.
   Who has to act: the component behind the finalizer example.com/hold.
   Evidence: widgets.example.com/x/w has the finalizer example.com/hold.
   To see more: kubectl weir tree nodes host
`},
		"a namespace that only its own finalizer holds": {"namespaces name: x, DELETED, finalizers: [example.com/hold]", "x", Facts{}, "", `
1. The finalizer example.com/hold holds it.
   Who has to act: the component behind the finalizer example.com/hold.
`},
		"a namespace that holds a kind which cannot be listed": {"namespaces name: x, DELETED\nconfigmaps name: c, namespace: x, DELETED, finalizers: [example.com/hold]",
			"x", Facts{}, "widgets.example.com", `
1. Objects of widgets.example.com cannot be listed, so it is not known whether some are left: conversion webhook for example.com/v1, Kind=Widget failed: no.
   Who has to act: whoever runs the conversion webhook of example.com/v1, Kind=Widget.
   To see more: kubectl get crd widgets.example.com -o jsonpath='{.spec.conversion}'

2. Content is left in the namespace: 1 configmaps.
   Who has to act: the component behind the finalizer example.com/hold.
   Evidence: finalizers in it: example.com/hold on 1.
   Evidence: configmaps/x/c has the finalizer example.com/hold.
   To see more: kubectl weir pending -n x
`},
		"what the namespace controller is refused to delete": {"namespaces name: x, DELETED\n" + "configmaps name: c, namespace: x", "x",
			Facts{Object: wholeOf(t, `{metadata: {uid: x}, status: {conditions: [{type: NamespaceDeletionContentFailure, status: "True", message: "Failed to delete: configmaps: ValidatingAdmissionPolicy 'fixed' with binding 'fixed' denied request: no"}]}}`)}, "", `
1. Content is left in the namespace: 1 configmaps.
   Who has to act: whoever wrote the ValidatingAdmissionPolicy fixed.
   Evidence: condition NamespaceDeletionContentFailure: some content could not be deleted: Failed to delete: configmaps: ValidatingAdmissionPolicy 'fixed' with binding 'fixed' denied request: no.
   To see more: kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings
`},
		"what the collector is refused to delete": {foreground + leaf, "boss", Facts{Events: []corev1.Event{said(v1beta1.ReasonCollectionRefused, "leaf", "leaf", denied)}}, "", `
1. Foreground deletion: it waits for configmaps/x/leaf.
   Who has to act: whoever runs the admission webhook guard.example.com.
   Evidence: the Event CollectionRefused on ConfigMap x/leaf, 2m ago: cannot delete it (why): admission webhook "guard.example.com" denied the request: not today.
   Evidence: configmaps/leaf is not being deleted: owner is being deleted foreground: ConfigMap x/boss.
   To see more: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide
`},
		"what the collector is refused to release": {orphaning + leaf, "boss", Facts{Events: []corev1.Event{said(v1beta1.ReasonCollectionRefused, "leaf", "leaf", denied)}}, "", `
1. Its dependents are being orphaned: configmaps/x/leaf still refers to it.
   Who has to act: whoever runs the admission webhook guard.example.com.
   Evidence: the Event CollectionRefused on ConfigMap x/leaf, 2m ago: cannot delete it (why): admission webhook "guard.example.com" denied the request: not today.
   To see more: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide
`},
		"what the collector is refused to let go": {foreground, "boss", Facts{Events: []corev1.Event{said(v1beta1.ReasonCollectionRefused, "boss", "boss", denied)}}, "", `
1. Foreground deletion, and nothing blocks it any more: the garbage collector has to remove its finalizer.
   Who has to act: whoever runs the admission webhook guard.example.com.
   Evidence: the Event CollectionRefused on ConfigMap x/boss, 2m ago: cannot delete it (why): admission webhook "guard.example.com" denied the request: not today.
   To see more: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide
`},
		"what Weir is refused to let go": {boss, "boss", Facts{Events: []corev1.Event{said(v1beta1.ReasonCollectionRefused, "boss", "boss", denied)}}, "", `
1. The finalizer weir.dev/propagation holds it: Weir's controller removes it when the propagation of the policy is carried out.
   Who has to act: whoever runs the admission webhook guard.example.com.
   Evidence: the Event CollectionRefused on ConfigMap x/boss, 2m ago: cannot delete it (why): admission webhook "guard.example.com" denied the request: not today.
   To see more: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide
`},
		"what is not valid any more": {foreground, "boss", Facts{Events: []corev1.Event{
			said(v1beta1.ReasonCollectionRefused, "boss", "boss", `cannot remove the finalizer foregroundDeletion from it (why): ConfigMap "boss" is invalid: data: Required value`)}}, "", `
1. Foreground deletion, and nothing blocks it any more: the garbage collector has to remove its finalizer.
   Who has to act: whoever makes ConfigMap "boss" valid again: its writer, or whoever writes the schema of its kind.
   Evidence: the Event CollectionRefused on ConfigMap x/boss, 2m ago: cannot remove the finalizer foregroundDeletion from it (why): ConfigMap "boss" is invalid: data: Required value.
   To see more: kubectl weir tree -n x configmaps boss
`},
		"an owner by a group of old": {old, "c", Facts{}, "", `
1. A reference to an owner cannot be resolved, so it is kept: kept: owner Deployment web: the cluster serves no kind "Deployment" in "extensions/v1beta1".
   Who has to act: whoever wrote the owner reference.
   Evidence: its owner Deployment web is deployments.apps/x/web: a reference to that has the kind Deployment and the apiVersion apps/v1.
   To see more: kubectl weir tree -n x configmaps c
`},
	} {
		t.Run(name, func(t *testing.T) {
			w := placeOf(t, c.objects)
			if c.unread != "" {
				w.NotListed(schema.ParseGroupResource(c.unread), false, "conversion webhook for example.com/v1, Kind=Widget failed: no")
			}
			a, ok := w.Why(c.uid, c.facts, noon)
			if !ok {
				t.Fatal("not there")
			}
			_, got, _ := strings.Cut(shown(t, a), "\n")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
