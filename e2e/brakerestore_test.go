//go:build full

package e2e

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestBrakeHoldsWhatARestoreBringsBack: a person lets 600 objects go whose owners are not there,
// and when they have gone etcd is put back to a backup in which they are there. What was decided
// does not count for what the backup has: it is held once more.
func TestBrakeHoldsWhatARestoreBringsBack(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]plane.RestoreOptions{"to older resourceVersions": {}, "with a leap to newer ones": {Bump: 1_000_000_000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, crd := newHoldable(t)
			owned := w.ownedByWidgets()
			w.deleteAll("widget") // while no collector works
			// Weir's rights are in the backup, too.
			kubeconfig := w.kubeconfigOf(weirUser)
			snapshot := filepath.Join(t.TempDir(), "snapshot.db")
			if err := w.plane.Snapshot(t.Context(), snapshot); err != nil {
				t.Fatal(err)
			}
			w.weir = w.runWeir(weir.Options{Kubeconfig: kubeconfig})
			held := w.awaitCounted(crd.Name, owned)
			w.proceed(crd.Name, status(held, "digest"))
			w.awaitGone(w.stillThere(owned)...)

			if err := w.plane.Restore(t.Context(), snapshot, o); err != nil {
				t.Fatal(err)
			}
			w.mustNotice(time.Now())
			held = w.awaitCounted(crd.Name, owned)
			if gone := len(owned) - w.countLeft(owned); gone > mostByInference {
				t.Errorf("%d objects were deleted after the restore, and %d are the limit", gone, mostByInference)
			}
			w.delete("boss", background)
			w.awaitGone("leaf")
			w.proceed(crd.Name, status(held, "digest"))
			w.awaitGone(owned...)
			w.awaitNotHeld(crd.Name)
		})
	}
}

// TestARenamedKindOfOwners: while Weir does not run, the definition of 600 owners is replaced.
// Where the kind that the references name is not served any more, it cannot be told what became of
// the owners, and nothing goes. Where another resource has that kind, its owners are not there:
// what they own is held, and goes on when the references are repaired.
func TestARenamedKindOfOwners(t *testing.T) {
	t.Parallel()
	for name, renamed := range map[string]apiextensionsv1.CustomResourceDefinitionNames{
		"the kind has another name":     {Plural: "gizmos", Singular: "gizmo", Kind: "Gizmo", ListKind: "GizmoList"},
		"the resource has another name": {Plural: "widgetries", Singular: "widgetry", Kind: "Widget", ListKind: "WidgetList"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, crd := newHoldable(t)
			w.startWeir()
			owned := w.ownedByWidgets()
			w.settle()
			w.weir.Kill()
			w.undefine(crd)
			other := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1")
			other.Spec.Names, other.Name = renamed, renamed.Plural+"."+other.Spec.Group
			w.define(other)
			if err := w.weir.Restart(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			w.delete("boss", background)
			w.awaitGone("leaf")
			if renamed.Kind != "Widget" {
				if err := w.weir.AwaitIdle(t.Context()); err != nil {
					t.Fatal(err)
				}
				if left := w.countLeft(owned); left != len(owned) || w.heldNow(crd.Name) != nil || w.heldNow(other.Name) != nil {
					t.Errorf("%d of %d are left", left, len(owned))
				}
				return
			}
			w.awaitCounted(other.Name, owned)
			left := w.stillThere(owned)
			if gone := len(owned) - len(left); gone > mostByInference {
				t.Errorf("%d objects were deleted, and %d are the limit", gone, mostByInference)
			}
			for _, name := range left {
				w.own(name)
			}
			w.awaitNotHeld(other.Name)
			if now := w.countLeft(owned); now != len(left) {
				t.Errorf("%d are left after they were repaired, want %d", now, len(left))
			}
		})
	}
}
