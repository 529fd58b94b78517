package e2e

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestCustomResourcesCascadeInEveryWay(t *testing.T) {
	t.Parallel()
	for _, scope := range []apiextensionsv1.ResourceScope{apiextensionsv1.NamespaceScoped, apiextensionsv1.ClusterScoped} {
		for _, policy := range []metav1.DeletionPropagation{background, foreground, orphan} {
			t.Run(string(scope)+" "+string(policy), func(t *testing.T) {
				t.Parallel()
				w := newFixture(t)
				w.define(w.definition("Widget", scope, "v1"))
				w.make(`
					widget boss
					widget leaf owners=(boss!block)
				`)
				w.delete("boss", policy)
				if policy != orphan {
					w.awaitGone("boss", "leaf")
					return
				}
				w.awaitGone("boss")
				w.mustStay("leaf")
				if have := w.owners("leaf"); have != "" {
					t.Errorf("the owners of leaf are (%s), want none", have)
				}
			})
		}
	}
}

// TestCustomAndBuiltInKindsWaitForEachOther: what is watched through a
// custom resource's watch holds up an owner of another kind, and the reverse.
func TestCustomAndBuiltInKindsWaitForEachOther(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.define(w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1"))
	w.make(`
		widget boss
		cm     middle  owners=(boss!block)
		widget stuck   owners=(middle!block)  finalizers=(example.com/hold)
	`)
	w.delete("boss", foreground)
	w.awaitTerminating("stuck")
	w.mustBeThere("boss", "middle", "stuck")
	w.unfinalize("stuck")
	w.awaitGone("boss", "middle", "stuck")
}

func TestClusterScopedOwnerOwnsAcrossNamespaces(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.define(w.definition("Widget", apiextensionsv1.ClusterScoped, "v1"))
	w.make(`
		widget boss
		cm     here  owners=(boss!block)
	`)
	w.beside().make(`cm there owners=(boss!block)`)
	w.mustStay("here", "there")
	w.delete("boss", foreground)
	w.awaitGone("here", "there", "boss")
}

// TestReferenceToAnotherServedVersionIsAsGood: references may name any served version.
func TestReferenceToAnotherServedVersionIsAsGood(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{background, foreground, orphan} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			w.define(w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1", "v1beta1"))
			w.make(`widget boss`)
			old := w.reference("boss!block")
			old.APIVersion = w.kinds["widget"].Group + "/v1beta1"
			w.create("cm", "leaf", []metav1.OwnerReference{old})
			w.mustStay("leaf")
			w.delete("boss", policy)
			w.awaitGone("boss")
			if policy == orphan {
				w.mustStay("leaf")
				return
			}
			w.awaitGone("leaf")
		})
	}
}

// TestVersionThatIsNotServedAnyMoreKeepsItsDependents: what a reference named when its version was
// still served does not count.
func TestVersionThatIsNotServedAnyMoreKeepsItsDependents(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	crd := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1", "v1beta1")
	w.define(crd)
	w.make(`
		widget boss
		cm     new  owners=(boss)
	`)
	old := w.reference("boss")
	old.APIVersion = w.kinds["widget"].Group + "/v1beta1"
	w.create("cm", "leaf", []metav1.OwnerReference{old})
	w.mustStay("leaf")
	end := []byte(`[{"op":"replace","path":"/spec/versions/1/served","value":false}]`)
	if _, err := w.crds().Patch(t.Context(), crd.Name, types.JSONPatchType, end, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitEvent("leaf", "OwnerRefUnresolvable")
	w.delete("boss", background)
	w.awaitGone("boss", "new")
	w.mustStay("leaf")
}
