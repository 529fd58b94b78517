package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// discovers tells whether a request asks which kinds there are.
func discovers(r *http.Request) bool {
	path := strings.Trim(r.URL.Path, "/")
	n := strings.Count(path, "/")
	return strings.HasPrefix(path, "api") && (n < 2 || n == 2 && strings.HasPrefix(path, "apis/"))
}

// TestKindThatOneAPIServerDoesNotServeLosesNothing: as it is during an upgrade, what kinds there
// are depends on which API server is asked.
func TestKindThatOneAPIServerDoesNotServeLosesNothing(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	second := newServers(w, "--runtime-config=batch/v1=false")
	b := w.startWeirSwitched(second, func(*http.Request) bool { return false })
	crd := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1")
	w.define(crd)
	w.make(`
		job boss
		cm  leaf   owners=(boss)
		cm  keeper
		job kept   owners=(keeper!block)
		cm  taker
		job taken  owners=(taker!block)
		job mixed  owners=(taker, boss)
	`)
	other := w.beside()
	other.make("job left")
	w.settle()
	served := func(yes bool) {
		t.Helper()
		b.set(func(r *http.Request) bool { return !yes && discovers(r) })
		w.rediscover(crd)
		w.awaitMetrics("the kind comes or goes", func(m weir.Metrics) bool { return m.Has("weir_graph_objects", "resource", "jobs") == yes })
	}

	served(false)
	job := w.kinds["job"]
	delete(w.kinds, "job") // none is collected now
	w.mustStay("leaf", "kept", "taken", "mixed")
	w.delete("keeper", orphan)
	w.delete("taker", background)
	uid := other.drop()
	w.awaitGone("taker")
	w.mustBeThere("keeper")
	w.mustStay("leaf", "kept", "taken", "mixed")
	if e := w.awaitEvent("keeper", "DeletionHeld"); !strings.Contains(e.Message, "jobs.batch (it is not served now") {
		t.Errorf("the Event does not say what it waits for: %s", e.Message)
	}
	w.kinds["job"] = job
	other.awaitDropped(uid)

	served(true)
	w.awaitGone("keeper", "taken", "left")
	delete(w.made, "left") // nothing can be made where it was
	w.mustStay("boss", "leaf", "kept", "mixed")
	w.awaitOwners("kept", "")
	w.awaitOwners("mixed", "boss")
	w.delete("boss", background)
	w.awaitGone("boss", "leaf", "mixed")
}

// TestWhatAPolicyKeepsIsWaitedForWhileItIsNotServed: its objects are there, and no API server shows
// them. Their owner stays until they are seen, and loses none of them; an owner of nothing there
// does not wait.
func TestWhatAPolicyKeepsIsWaitedForWhileItIsNotServed(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		crd := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1")
		w.define(crd)
		w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan"))
		w.awaitFinalizerAdded("cm")
		w.make(`
			cm     boss
			widget kept  owners=(boss)
			cm     alone
		`)
		shows := func(yes bool) {
			w.serves(crd, yes)
			w.awaitMetrics("the kind comes or goes", func(m weir.Metrics) bool { return m.Has("weir_graph_objects", "group", crd.Spec.Group) == yes })
		}
		w.awaitMetrics("the widget is seen", func(m weir.Metrics) bool { return m.Sum("weir_graph_objects", "group", crd.Spec.Group) == 1 })
		shows(false)
		w.delete("boss", background)
		w.delete("alone", background)
		w.awaitGone("alone")
		w.mustSay(w.awaitEvent("boss", "DeletionHeld").Message, crd.Name+" (it is not served now")
		shows(true)
		w.awaitGone("boss")
		w.until("it is released", func(context.Context) (bool, error) { return w.owners("kept") == "", nil })
		w.settle()
		w.mustStay("kept")
	})
}

// rediscover changes a definition, at which weir asks again which kinds there are.
func (w *fixture) rediscover(crd *apiextensionsv1.CustomResourceDefinition) {
	w.Helper()
	patch := []byte(`{"metadata":{"annotations":{"at":"` + time.Now().Format(time.RFC3339Nano) + `"}}}`)
	if _, err := w.crds().Patch(w.Context(), crd.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

// TestDefinitionOfAnotherScopeThatAnAPIServerHasNotSeen: it looks for objects of the new kind where
// those of the old one would be, finds none, and says so as if it knew.
func TestDefinitionOfAnotherScopeThatAnAPIServerHasNotSeen(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	second := newServers(w)
	widgets := about("widgets", "customresourcedefinitions")
	w.startWeirSwitched(second, func(r *http.Request) bool { return discovers(r) || widgets(r) })
	crd := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1")
	w.define(crd)
	w.make(`
		widget old
		cm     other
	`)
	w.settle()
	looked := w.sum("weir_lookups_total")
	second.Lag.Hold()
	w.undefine(crd)
	crd.Spec.Scope = apiextensionsv1.ClusterScoped
	w.define(crd)
	w.make(`
		widget boss
		cm     leaf owners=(boss)
	`)
	w.awaitMetrics("it has looked for the owner", func(m weir.Metrics) bool { return m.Sum("weir_lookups_total") > looked })
	widget := w.kinds["widget"]
	delete(w.kinds, "widget")
	w.mustStay("leaf")
	w.kinds["widget"] = widget
	second.Lag.Release()
	w.mustStay("leaf", "boss")
	w.delete("boss", background)
	w.awaitGone("leaf")
}
