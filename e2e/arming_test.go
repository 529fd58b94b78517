package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// removeFinalizer takes Weir's finalizer off behind its back, as if the object had been made
// while the webhook was away: the webhook that adds it would put it back.
func (w *fixture) removeFinalizer(names ...string) {
	w.Helper()
	// The entries for deletes are written after those that add the finalizer. Until then the API
	// server would not ask about what lacks it.
	all, err := w.dynamic.Resource(policyResources["DeletionPolicy"]).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for _, p := range all.Items {
		if strings.HasSuffix(p.GetName(), w.namespace) {
			w.awaitCondition("DeletionPolicy", p.GetName(), "Enforced", metav1.ConditionTrue)
		}
	}
	client := w.impersonating(weirUser, "system:masters")
	for _, name := range names {
		o := w.of(name)
		patch := []byte(`{"metadata":{"finalizers":null,"annotations":{"weir.dev/armed-at":null}}}`)
		if _, err := client.Resource(o.gvr()).Namespace(o.namespace).Patch(w.Context(), o.name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

const configMaps = `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  propagation: {default: %s}`

// A DELETE that was under way when the object got the finalizer would not honour the
// finalizer: for a while there is none that is let through.
func TestFreshFinalizerHoldsEveryDelete(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan"))
		w.awaitFinalizerAdded("cm")
		w.make("cm one")
		w.removeFinalizer("one")
		once := func() error { // without the client's own retries
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return w.at(w.of("one")).Delete(ctx, "one", metav1.DeleteOptions{})
		}
		began := time.Now()
		for try := range 3 {
			if err := once(); err == nil {
				t.Fatalf("try %d of one that was stamped %s ago was let through", try, time.Since(began))
			}
		}
		window, err := time.ParseDuration(armingWindow)
		if err != nil {
			t.Fatal(err)
		}
		w.delete("one", none) // the client comes again when it is told to
		if took := time.Since(began); took < window {
			t.Errorf("let through after %s, less than %s", took, window)
		}
		w.awaitGone("one")
	})
}

// makeAll makes ConfigMaps, and for each a Secret that it owns, many at a time.
func (w *fixture) makeAll(owners, children []string) {
	w.Helper()
	w.makePairs("cm", owners, children)
}

// makePairs makes owners of a kind, and for each a Secret that blocks its deletion.
func (w *fixture) makePairs(short string, owners, children []string) {
	w.Helper()
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(32)
	create := func(short, name string, refs ...metav1.OwnerReference) (object, error) {
		o, err := w.makeOne(w.Context(), short, name, refs)
		mu.Lock()
		defer mu.Unlock()
		w.made[name] = o
		return o, err
	}
	for i, owner := range owners {
		group.Go(func() error {
			o, err := create(short, owner)
			if err == nil && i < len(children) {
				ref := o.reference()
				ref.BlockOwnerDeletion = new(true)
				_, err = create("sec", children[i], ref)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		w.Fatal(err)
	}
}

// A controller that PUTs what it knows, and knows no finalizers, neither arms what has the
// finalizer, nor changes it each time.
func TestReplacingWithoutTheFinalizerChangesNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan"))
		w.awaitFinalizerAdded("cm")
		w.make("cm one")
		name := w.of("one").name
		naive := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q},"data":{"a":"b"}}`, name, w.namespace)
		put := func() (resourceVersion, armed string) {
			t.Helper()
			if _, err := w.typed.CoreV1().RESTClient().Put().Namespace(w.namespace).Resource("configmaps").Name(name).
				SetHeader("Content-Type", "application/json").Body([]byte(naive)).DoRaw(w.Context()); err != nil {
				t.Fatal(err)
			}
			o := w.get("one")
			if fmt.Sprint(o.GetFinalizers()) != "[weir.dev/propagation]" {
				t.Fatalf("finalizers %v", o.GetFinalizers())
			}
			return o.GetResourceVersion(), o.GetAnnotations()["weir.dev/armed-at"]
		}
		first, armed := put()
		if armed != "" {
			t.Errorf("armed at %s, though it was stamped when it was made", armed)
		}
		if second, _ := put(); second != first {
			t.Errorf("the same PUT again made version %s of %s", second, first)
		}
	})
}
