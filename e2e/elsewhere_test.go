//go:build full

package e2e

import (
	"context"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestBrokenAPIThatMayHoldContentHoldsNamespaces: as in the reference, and the condition names the
// kind (RB 11.31).
func TestBrokenAPIThatMayHoldContentHoldsNamespaces(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	g := w.newGadgets("get", "list", "watch", "delete", "patch")
	inside := w.beside()
	g.add(inside, "gadget")
	w.startWeir()
	w.awaitMetrics("the gadget is seen", func(m weir.Metrics) bool {
		return m.Sum("weir_graph_objects", "resource", "gadgets", "group", aggregated) == 1
	})
	w.stopped(g)

	elsewhere := w.beside()
	elsewhere.make("cm settings")
	waits := waitsUnlisted("gadgets." + aggregated)
	empty, full := elsewhere.drop(), inside.drop()
	elsewhere.awaitConditions(waits)
	inside.awaitConditions(waits)
	elsewhere.awaitGone("settings")
	g.start()
	elsewhere.awaitDropped(empty)
	inside.awaitDropped(full)
	if g.has("gadget") {
		t.Error("the namespace went, and left the gadget behind")
	}
	w.storedVersionIsRemoved()
}

// TestBrokenAPIWhoseObjectsCannotBeDeletedHoldsNothing: such as one of metrics, which in the
// reference holds every namespace (RB 11.31).
func TestBrokenAPIWhoseObjectsCannotBeDeletedHoldsNothing(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	g := w.newGadgets("get", "list")
	w.until("the API is served", func(ctx context.Context) (bool, error) {
		_, err := w.dynamic.Resource(w.kinds["gadget"].gvr()).List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	w.startWeir()
	w.stopped(g)
	other := w.beside()
	other.make("cm settings")
	other.awaitDropped(other.drop())
}

// waitsUnlisted is the condition of a namespace that waits for a kind whose lists fail.
func waitsUnlisted(kind string) string {
	return "WeirDraining=True Waiting: wave 2 of 2 (rest): waiting for " + kind + ", which cannot be listed: …"
}

// stopped breaks the API of gadgets, and returns when the API server says so.
func (w *fixture) stopped(g *gadgets) {
	w.Helper()
	g.stop()
	w.until("the API is down", func(ctx context.Context) (bool, error) {
		_, err := w.dynamic.Resource(w.kinds["gadget"].gvr()).List(ctx, metav1.ListOptions{})
		return err != nil, nil
	})
}

// storedVersionIsRemoved has a kind whose lists fail, since nobody migrated what is stored: only the
// namespaces with an object of it wait.
func (w *fixture) storedVersionIsRemoved() {
	w.Helper()
	crd := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1", "v2")
	w.define(crd)
	inside, elsewhere := w.beside(), w.beside()
	inside.make("widget stored")
	elsewhere.make("cm settings")
	for _, step := range [][]string{
		{"--type=json", `-p=[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`},
		{"--subresource=status", "--type=merge", `-p={"status":{"storedVersions":["v2"]}}`},
		{"--type=json", `-p=[{"op":"remove","path":"/spec/versions/0"}]`},
	} {
		w.mustKubectl(append([]string{"patch", "crd", crd.Name}, step...)...)
	}
	w.until("lists fail", func(context.Context) (bool, error) {
		_, err := w.kubectl("get", crd.Name, "-A")
		return err != nil, nil
	})
	uid := inside.drop()
	elsewhere.awaitDropped(elsewhere.drop())
	inside.awaitConditions(waitsUnlisted(crd.Name))
	w.mustKubectl("patch", "crd", crd.Name, "--type=json", `-p=[{"op":"add","path":"/spec/versions/-","value":{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}}]`)
	inside.awaitDropped(uid)
}

// TestAPIThatNeverAnsweredHoldsNamespacesAndIsNamed: whether it has kinds that are
// in namespaces is not known.
func TestAPIThatNeverAnsweredHoldsNamespacesAndIsNamed(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	port, err := plane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	w.aggregate(port)
	w.startWeir()
	other := w.beside()
	other.make("cm settings")
	uid := other.drop()
	other.awaitConditions(
		"NamespaceDeletionDiscoveryFailure=True DiscoveryFailed: Discovery failed for some groups, 1 failing: "+aggregated+"/v1",
		"WeirDraining=True Waiting: API groups do not answer and may hold content: "+aggregated+"/v1",
	)
	other.awaitGone("settings")
	services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	if err := w.dynamic.Resource(services).Delete(t.Context(), "v1."+aggregated, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	other.awaitDropped(uid)
}

// TestKindThatCannotBeWatchedIsListedAndDeleted: the graph knows nothing of it,
// and it has no deletecollection.
func TestKindThatCannotBeWatchedIsListedAndDeleted(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	g := w.newGadgets("list", "delete")
	inside := w.beside()
	g.add(inside, "gadget")
	w.until("the API is served", func(ctx context.Context) (bool, error) {
		list, err := w.dynamic.Resource(w.kinds["gadget"].gvr()).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 1, nil
	})
	w.startWeir()
	inside.awaitDropped(inside.drop())
	if g.has("gadget") {
		t.Error("the namespace went, and left the gadget behind")
	}
}
