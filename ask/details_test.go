package ask

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPendingNamesWhoRefuses: what the collector is refused does not wait for the collector.
func TestPendingNamesWhoRefuses(t *testing.T) {
	w := newTown(t)
	w.put("owner", "", ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [foregroundDeletion]")
	w.api.Put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: below, namespace: shop, uid: below, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: uid-owner, blockOwnerDeletion: true}]}}")
	w.api.Put("events", `{apiVersion: v1, kind: Event, metadata: {name: e, namespace: shop}, reason: CollectionRefused, source: {component: weir}, involvedObject: {uid: below},
		message: 'cannot delete it: admission webhook "guard.example.com" denied the request: no'}`)
	for _, args := range []string{"pending -n shop", "pending -A"} {
		got := w.run(strings.Fields(args)...)
		if got.failed != nil || !strings.HasPrefix(got.out, "1 waits for whoever runs the admission webhook guard.example.com:\n  configmaps/shop/owner for ") {
			t.Errorf("%s: %v\n%s%s", args, got.failed, got.out, got.err)
		}
	}
	w.refuse("/events", 403, "Forbidden", "you may not")
	if got := w.run("pending", "-n", "shop"); !strings.HasPrefix(got.out, "1 waits for the garbage collector:\n") || !strings.Contains(got.err, "incomplete: events in the namespace shop could not be read") {
		t.Errorf("%s%s", got.out, got.err)
	}
}

// TestPlanSaysWhatBecomesOfVolumes: a claim takes its data along, or does not, or that is not
// known.
func TestPlanSaysWhatBecomesOfVolumes(t *testing.T) {
	w := newTown(t)
	verbs := metav1.Verbs{"list", "watch", "get", "delete"}
	w.core = []metav1.APIResource{
		{Name: "persistentvolumeclaims", SingularName: "persistentvolumeclaim", ShortNames: []string{"pvc"}, Kind: "PersistentVolumeClaim", Namespaced: true, Verbs: verbs},
		{Name: "persistentvolumes", SingularName: "persistentvolume", Kind: "PersistentVolume", Verbs: verbs},
	}
	for claim, policy := range map[string]string{"lost-1": "Delete", "lost-2": "Delete", "kept": "Retain", "wiped": "Recycle", "unbound": ""} {
		w.api.Put("persistentvolumeclaims", fmt.Sprintf("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s, namespace: shop, uid: %s}}", claim, claim))
		if policy != "" {
			w.api.Put("persistentvolumes", fmt.Sprintf("{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk-%s}, spec: {persistentVolumeReclaimPolicy: %s, claimRef: {uid: %s}}}", claim, policy, claim))
		}
	}
	for args, want := range map[string][]string{
		"plan namespace shop": {"lost-1, lost-2: its volume is deleted, and the data on it (reclaim policy Delete)\n", "kept: its volume is kept (reclaim policy Retain)\n",
			"wiped: the data on its volume is deleted (reclaim policy Recycle)\n", "unbound\n", ", 3 volumes lose their data."},
		"plan pvc lost-1 --full":  {"- persistentvolumeclaims/lost-1: its volume disk-lost-1 is deleted, and the data on it (reclaim policy Delete); step 1", ", 1 volume loses its data."},
		"plan pvc lost-2 -o json": {`"name": "disk-lost-2",`, `"reclaimPolicy": "Delete"`},
	} {
		if got := w.run(strings.Fields(args)...); got.failed != nil || !containsAll(got.out, want) {
			t.Errorf("%s: %v\n%s", args, got.failed, got.out)
		}
	}
	w.refuse("/persistentvolumes", 403, "Forbidden", "you may not")
	if got := w.run("plan", "pvc", "kept", "unbound"); !containsAll(got.out, []string{"kept, unbound: what becomes of its volume is not known: you may not\n"}) {
		t.Errorf("%s", got.out)
	}
}

// TestPlanGoesOnPastWhatIsNotThere: as kubectl does, and says what it left out.
func TestPlanGoesOnPastWhatIsNotThere(t *testing.T) {
	w := newTown(t)
	file := filepath.Join(w.kept, "all.yaml")
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nobody}\n---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: leaf}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"plan -o json -f " + file, "plan -o json cm leaf nobody"} {
		got := w.run(strings.Fields(args)...)
		if got.failed != nil || got.goes(t) != "configmaps/shop/leaf\nconfigmaps/shop/twig\n" || !strings.Contains(got.err, `not there, and not in the plan: configmaps "nobody" not found`) ||
			strings.Contains(args, file) != strings.Contains(got.err, `not there, and not in the plan: resource mapping not found for name: "w"`) {
			t.Errorf("%s: %v\n%s%s", args, got.failed, got.out, got.err)
		}
	}
	w.refuse("/configmaps/nobody", 403, "Forbidden", "you may not")
	w.run("plan", "-f", file).mustFail(t, "you may not")
	w.run("why", "cm", "leaf", "nobody").mustFail(t, "you may not")
}

func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}
