//go:build full

package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestTypesAndNamesAreCompleted: as the shell asks for it.
func TestTypesAndNamesAreCompleted(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm boss-1
		cm boss-2
		cm other
	`)
	for typed, want := range map[string]string{
		"plan configm":           "configmaps\n",
		"plan deployments.a":     "deployments.apps\n",
		"why configmap bo":       "boss-1\nboss-2\n",
		"tree cm/o":              "cm/other\n",
		"plan nonsense x":        "",
		"plan configmaps boss-2": "boss-2\n",
	} {
		words := strings.Fields(typed)
		args := append([]string{"__complete", words[0], "--kubeconfig", w.plane.Kubeconfig, "-n", w.namespace, "--cache-dir", t.TempDir()}, words[1:]...)
		out, err := exec.CommandContext(t.Context(), shared.plugin, args...).Output()
		if have, _, _ := strings.Cut(string(out), ":4\n"); err != nil || have != want {
			t.Errorf("%q is completed by %q, %v, want %q", typed, out, err, want)
		}
	}
}

// TestPlanOfWhatTakesMoreAlong: a namespace takes what is in it, a definition its instances.
func TestPlanOfWhatTakesMoreAlong(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	crd := w.definition("Planned", "Namespaced", "v1")
	w.define(crd)
	other := w.beside()
	other.make(`
		po pod
		cm settings
		cm held     finalizers=(example.com/hold)
	`)
	out := other.mustAsk("plan", "namespace", other.namespace)
	other.mustSay(out, "- namespaces/"+other.namespace, "- pods/pod", "! configmaps/held")
	if pod, settings := strings.Index(out, "pods/pod"), strings.Index(out, "settings"); pod < 0 || settings < 0 {
		t.Errorf("not all of the content is told:\n%s", out)
	}
	made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": crd.Spec.Group + "/v1", "kind": crd.Spec.Names.Kind}}
	made.SetName("one")
	kind := schema.GroupVersionResource{Group: crd.Spec.Group, Version: "v1", Resource: crd.Spec.Names.Plural}
	if _, err := w.dynamic.Resource(kind).Namespace(w.namespace).Create(w.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.mustSay(w.mustAsk("plan", "crd", crd.Name), "- customresourcedefinitions.apiextensions.k8s.io/"+crd.Name, "- "+crd.Name+"/"+w.namespace+"/one")
	other.unfinalize("held")
}

// TestPlanAsksPolicies: what they change is in the plan, as it is in the delete; mustRefuse holds what they refuse against it.
func TestPlanAsksPolicies(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan"))
		w.awaitFinalizerAdded("cm")
		w.make(`
			cm  owner
			sec child  owners=(owner!block)
			sec top
			cm  middle owners=(top)
			sec below  owners=(middle)
		`)
		w.mustSay(w.mustAsk("plan", "cm", "owner"), "- configmaps/owner: orphan by policy deletionpolicy-"+w.namespace, "~ secrets/child: kept: orphaned by",
			"Plan: 1 object is deleted in 2 steps, 1 is kept and loses a reference.")
		w.mustSay(w.mustAsk("plan", "secret", "top"), "- secrets/top\n  - configmaps/middle: orphan by policy", "~ secrets/below: kept")
		w.mustKubectl("delete", "configmap", "owner")
		w.mustKubectl("delete", "secret", "top")
		w.awaitGone("owner", "top", "middle")
		w.mustStay("child", "below")
	})
}

// TestHistoryTellsWhatWasCollected: because of which object, over all generations, also after it is gone.
func TestHistoryTellsWhatWasCollected(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{}) // where no other test's cascades take up the Events
	w.startWeir()
	w.make(`
		cm  web
		sec middle   owners=(web!block)
		cm  leaf-1   owners=(middle!block)
		cm  leaf-2   owners=(middle)
		cm  held     owners=(web)            finalizers=(example.com/hold)
		cm  after    owners=(held)
		sec single
		cm  of-it    owners=(single)
		cr  wide
		cm  below    owners=(wide)
	`)
	w.mustSay(w.mustAsk("history"), "No cascade is recorded.")
	w.delete("web", background)
	w.delete("single", background)
	w.awaitGone("web", "middle", "leaf-1", "leaf-2", "single", "of-it")
	w.awaitEvent("web", "Cascade")
	w.awaitEvent("single", "Cascade")
	w.delete("wide", background)
	w.awaitGone("wide", "below")
	w.awaitEvent("wide", "Cascade")
	w.mustSay(w.mustAsk("history", "clusterrole", w.of("wide").name), ": 1 object that it owned was deleted")
	w.mustSay(w.mustAsk("history", "cm/web", "-A"), "ConfigMap "+w.namespace+"/web: 4 objects that it owned")
	w.mustSay(w.mustAsk("history", "cm/web"), "ConfigMap "+w.namespace+"/web: 4 objects that it owned, directly or not, were deleted by garbage collection within ", ": 3 configmaps, 1 secrets")
	w.unfinalize("held")
	w.awaitGone("held", "after")
	w.until("what went later is told with the rest", func(context.Context) (bool, error) {
		return strings.Contains(w.mustAsk("history", "cm", "web"), "web: 5 objects"), nil
	})
	out := w.mustAsk("history")
	w.mustSay(out, "Secret "+w.namespace+"/single: 1 object that it owned was deleted")
	if lines := strings.Count(out, "\n"); lines != 2 {
		t.Errorf("%d lines, want one for each object that went first:\n%s", lines, out)
	}
	var told struct {
		Items []struct{ Kind, Name, UID, What string }
	}
	if err := json.Unmarshal([]byte(w.mustAsk("history", "secret", "single", "-o", "json")), &told); err != nil {
		t.Fatal(err)
	}
	if len(told.Items) != 1 || told.Items[0].Kind != "Secret" || told.Items[0].UID != string(w.of("single").uid) {
		t.Errorf("told as JSON: %+v", told)
	}
}
