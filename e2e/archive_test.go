package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/e2e/plane"
)

var (
	deletedTrees  = schema.GroupVersionResource{Group: "weir.dev", Version: "v1beta1", Resource: "deletedtrees"}
	archiveChunks = schema.GroupVersionResource{Group: "weir.dev", Version: "v1beta1", Resource: "archivechunks"}
)

// TestWhatIsDeletedIsArchivedWhole: owners with Secrets are deleted, and the leader is killed at
// random moments meanwhile. Each goes with all that it owns, and leaves one tree, which is whole;
// nothing of a Secret's content is in what is stored. A tree that is deleted takes its chunks along.
func TestWhatIsDeletedIsArchivedWhole(t *testing.T) {
	t.Parallel()
	for m, o := range map[mode]plane.Options{replace: {}, companion: {Controllers: plane.Collectors, ControllerManagerFlags: lifted}} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			w, p := newPaired(t, m, o)
			w.archives("")
			const each = 15
			roots := numbered("root", 4)
			var all []string
			for _, root := range roots {
				w.make("cm " + root)
				owned := numbered("of-"+root, each)
				w.make(dependents("sec", owned, root))
				all = append(append(all, root), owned...)
			}
			secret := w.of("of-" + roots[0] + "-0")
			if _, err := w.at(secret).Patch(t.Context(), secret.name, "application/merge-patch+json",
				[]byte(`{"stringData":{"password":"tell-nobody-of-this"}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			w.settle()
			seed := time.Now().UnixNano()
			t.Logf("seed %d", seed)
			chance := rand.New(rand.NewSource(seed))
			for _, root := range roots {
				w.delete(root, background)
				for range chance.Intn(30) { // the moment is what is tried: each read takes some milliseconds
					if _, err := w.dynamic.Resource(deletedTrees).List(t.Context(), metav1.ListOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				w.again(p.controller)
			}
			w.awaitGone(all...)
			trees := map[string]unstructured.Unstructured{}
			w.until("there is one whole tree of each", func(ctx context.Context) (bool, error) {
				clear(trees)
				n := 0
				list, err := w.dynamic.Resource(deletedTrees).List(ctx, metav1.ListOptions{})
				if err != nil {
					return false, err
				}
				for _, tree := range list.Items {
					root, _, _ := unstructured.NestedString(tree.Object, "spec", "root", "name")
					if slices.Contains(roots, root) { // others have gone before
						trees[root] = tree
						n++
					}
				}
				return n == len(roots) && len(trees) == len(roots), nil
			})
			for root, tree := range trees {
				objects, _, _ := unstructured.NestedInt64(tree.Object, "status", "objects")
				missed, _, _ := unstructured.NestedInt64(tree.Object, "status", "missedObjects")
				if text, _ := json.Marshal(tree.Object); objects != each+1 || missed != 0 || !strings.Contains(string(text), `"reason":"Recorded"`) {
					t.Errorf("%s: %d objects, %d missed: %s", root, objects, missed, text)
				}
			}
			chunks, err := w.dynamic.Resource(archiveChunks).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range chunks.Items {
				// As it is, and as base64 has it.
				if text, _ := json.Marshal(c.Object); strings.Contains(string(text), "tell-nobody") || strings.Contains(string(text), "dGVsbC1ub2JvZHkt") {
					t.Errorf("%s shows a Secret", c.GetName())
				}
			}
			for _, tree := range trees {
				if err := w.dynamic.Resource(deletedTrees).Delete(t.Context(), tree.GetName(), metav1.DeleteOptions{PropagationPolicy: new(background)}); err != nil {
					t.Fatal(err)
				}
			}
			w.until("the chunks are collected", func(ctx context.Context) (bool, error) {
				list, err := w.dynamic.Resource(archiveChunks).List(ctx, metav1.ListOptions{})
				return err == nil && !slices.ContainsFunc(list.Items, func(c unstructured.Unstructured) bool {
					return strings.HasPrefix(c.GetName(), "root-")
				}), err
			})
		})
	}
}

// archives has ConfigMaps recorded for an hour, and held until they are; more is what else the
// archive says.
func (w *fixture) archives(more string) {
	w.Helper()
	w.policy("DeletionPolicy", fmt.Sprintf(`
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  archive: {retentionSeconds: 3600%s}
  failurePolicy: Fail`, more))
	w.awaitFinalizerAdded("cm")
}
