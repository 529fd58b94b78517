//go:build full

package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

var rewritten = flag.Int("brake.rewritten", 105, "how many owner references each faulty controller rewrites")

// ownerKinds are kinds of which owners are, so many that of each there are few.
var ownerKinds = []string{"cm", "sec", "po", "rc", "deploy", "rs", "job"}

// rewriting is a controller that is wrong about the owners of objects.
type rewriting struct {
	writer string
	severs bool // it removes references, and writes none
	// owners are those that an object has from the start; nil: one that is there.
	owners func(w *fixture, i int) []metav1.OwnerReference
	// prepared is done once all objects are there.
	prepared func(w *fixture)
	// wrong is what it writes into the i-th object.
	wrong func(w *fixture, i int) []metav1.OwnerReference
	// then is what happens afterwards.
	then func(w *fixture)
}

// to is a reference to an owner of one of the kinds, by turns.
func to(w *fixture, i int, name string, uid types.UID) []metav1.OwnerReference {
	k := w.kinds[ownerKinds[i%len(ownerKinds)]]
	return []metav1.OwnerReference{{APIVersion: k.GroupVersion().String(), Kind: k.Kind, Name: name, UID: uid}}
}

// oneOfEach makes an owner of each kind, with a common beginning of their names.
func (w *fixture) oneOfEach(prefix string, finalizers ...string) {
	w.Helper()
	for _, short := range ownerKinds {
		w.create(short, prefix+"-"+short, nil, finalizers...)
	}
}

func (w *fixture) eachOwner(prefix string, f func(name string)) {
	for _, short := range ownerKinds {
		f(prefix + "-" + short)
	}
}

// ownerOf is the reference to that of them whose turn it is.
func (w *fixture) ownerOf(prefix string, i int) []metav1.OwnerReference {
	return []metav1.OwnerReference{w.of(prefix + "-" + ownerKinds[i%len(ownerKinds)]).reference()}
}

func rewritings() []rewriting {
	one := uuid.NewUUID()
	var elsewhere *fixture
	var once sync.Once
	return []rewriting{
		{writer: "faulty-one-uid", wrong: func(w *fixture, i int) []metav1.OwnerReference { return to(w, i, "never", one) }},
		{writer: "faulty-uids", wrong: func(w *fixture, i int) []metav1.OwnerReference { return to(w, i, "never", uuid.NewUUID()) }},
		{writer: "faulty-long-gone",
			prepared: func(w *fixture) {
				w.oneOfEach("old")
				w.eachOwner("old", func(name string) { w.delete(name, background) })
				w.eachOwner("old", func(name string) { w.awaitGone(name) })
			},
			wrong: func(w *fixture, i int) []metav1.OwnerReference { return w.ownerOf("old", i) }},
		{writer: "faulty-ending",
			prepared: func(w *fixture) {
				w.oneOfEach("ending", "example.com/f")
				w.eachOwner("ending", func(name string) { w.delete(name, background) })
			},
			wrong: func(w *fixture, i int) []metav1.OwnerReference { return w.ownerOf("ending", i) },
			then:  func(w *fixture) { w.eachOwner("ending", func(name string) { w.unfinalize(name) }) }},
		{writer: "faulty-removes", severs: true,
			owners: func(w *fixture, i int) []metav1.OwnerReference {
				return append(w.ownerOf("second", i), w.reference("right"))
			},
			prepared: func(w *fixture) { w.eachOwner("second", func(name string) { w.delete(name, background) }) },
			wrong:    func(w *fixture, i int) []metav1.OwnerReference { return w.ownerOf("second", i) },
			then:     func(w *fixture) { w.eachOwner("second", func(name string) { w.unfinalize(name) }) }},
		{writer: "faulty-elsewhere",
			wrong: func(w *fixture, i int) []metav1.OwnerReference {
				once.Do(func() {
					elsewhere = w.beside()
					elsewhere.oneOfEach("elsewhere")
				})
				return w.ownerOf("elsewhere", i)
			}},
	}
}

// rewrittenBy are the names of the objects of a writer.
func rewrittenBy(r *rewriting) []string { return numbered(r.writer, *rewritten) }

// makeRewritten makes objects of two kinds that are owned as they should be.
func (w *fixture) makeRewritten(r *rewriting) {
	w.Helper()
	if r.owners == nil {
		r.owners = func(w *fixture, _ int) []metav1.OwnerReference { return []metav1.OwnerReference{w.reference("right")} }
	} else {
		w.oneOfEach("second", "example.com/f")
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(32)
	refs := make([][]metav1.OwnerReference, *rewritten)
	for i := range refs {
		refs[i] = r.owners(w, i)
	}
	for i, name := range rewrittenBy(r) {
		k := w.kinds[[]string{"cm", "sec"}[i%2]]
		group.Go(func() error {
			manifest, err := k.manifest(name, refs[i], nil)
			if err != nil {
				return err
			}
			o := object{kind: k, namespace: w.namespace, name: name}
			made, err := w.at(o).Create(w.Context(), manifest, metav1.CreateOptions{FieldManager: "right"})
			if err != nil {
				return err
			}
			o.uid = made.GetUID()
			mu.Lock()
			defer mu.Unlock()
			w.made[name] = o
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		w.Fatal(err)
	}
	if r.prepared != nil {
		r.prepared(w)
	}
}

// write has a client write the references of objects, many at a time. What is gone by then is left out.
func (w *fixture) write(manager string, names []string, refs func(i int) []metav1.OwnerReference) {
	w.Helper()
	var group errgroup.Group
	group.SetLimit(32)
	for i, name := range names {
		o := w.of(name)
		change, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": refs(i)}})
		if err != nil {
			w.Fatal(err)
		}
		group.Go(func() error {
			_, err := w.at(o).Patch(w.Context(), o.name, types.MergePatchType, change, metav1.PatchOptions{FieldManager: manager})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		w.Fatal(err)
	}
}

// heldNames are all HeldCollections, with how many objects each holds.
func (w *fixture) heldNames() (all []string) {
	w.Helper()
	list, err := w.dynamic.Resource(heldCollections).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for i := range list.Items {
		all = append(all, fmt.Sprint(list.Items[i].GetName(), ": ", status(&list.Items[i], "held")))
	}
	return all
}

// TestBrakeHoldsWhatOneWriterRewrites has six controllers rewrite the references of 105 objects each, so that of no kind of owners there are more than the
// limit: to owners that never were, that are gone, that are being deleted, that are in another namespace; or of two owners they take away the one that
// is there. What follows is held for each of them, across all kinds, by its own name where managedFields tell it, in both modes. Nothing else waits. Of some
// a person decides, the others are repaired.
func TestBrakeHoldsWhatOneWriterRewrites(t *testing.T) {
	t.Parallel()
	limit := *rewritten * 9 / 10
	flag := fmt.Sprint("--brake-objects=", limit)
	for name, start := range map[mode]func(*testing.T) *fixture{
		replace: func(t *testing.T) *fixture {
			w, _ := newHoldable(t)
			w.startWeir(flag)
			return w
		},
		companion: func(t *testing.T) *fixture {
			w, _, _ := newHoldableCompanion(t, plane.Collectors, flag)
			return w
		},
	} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			w := start(t)
			w.make("cm right\ncm boss\ncm leaf owners=(boss)")
			all := rewritings()
			w.rewriteAll(all)
			w.delete("boss", background)
			w.awaitGoneIn(collectorBegins, "leaf")
			w.holdsRewritten(all, limit)
			all = w.settleRewritten(all, func(r *rewriting) bool { return r.severs }) // the next process does not know what was removed
			w.weir.Kill()
			if err := w.weir.Restart(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			w.holdsRewritten(all, limit)
			w.settleRewritten(all, func(*rewriting) bool { return true })
		})
	}
}

// awaitSeen waits until weir has seen so many objects of both kinds: of what it has not seen before an edit it does not know that.
func (w *fixture) awaitSeen(least int) {
	w.Helper()
	w.until("weir has seen all objects", func(ctx context.Context) (bool, error) {
		for _, p := range []*weir.Process{w.weir, w.hook} {
			if p == nil {
				continue
			}
			m, err := p.Metrics(ctx)
			if err != nil || m.Sum("weir_graph_objects", "resource", "configmaps") < float64(least) || m.Sum("weir_graph_objects", "resource", "secrets") < float64(least) {
				return false, err
			}
		}
		return true, nil
	})
}

// rewriteAll has one controller after the other be wrong: in the first minutes what comes at once counts together.
func (w *fixture) rewriteAll(all []rewriting) {
	w.Helper()
	for i := range all {
		w.makeRewritten(&all[i])
	}
	w.awaitSeen(len(all) * (*rewritten / 2))
	for i := range all {
		r := &all[i]
		w.write(r.writer, rewrittenBy(r), func(i int) []metav1.OwnerReference { return r.wrong(w, i) })
		if r.then != nil {
			r.then(w)
		}
		w.awaitHeld(r.heldFor(), 1)
	}
}

// heldFor is the HeldCollection of what a controller was wrong about.
func (r *rewriting) heldFor() string {
	if r.severs {
		return "written-by.unknown" // who has removed a reference is not among managedFields
	}
	return "written-by." + r.writer
}

// holdsRewritten: no more than the limit goes for each controller, and the rest is held.
func (w *fixture) holdsRewritten(all []rewriting, limit int) {
	w.Helper()
	for i := range all {
		r := &all[i]
		held := w.awaitCounted(r.heldFor(), rewrittenBy(r))
		left := w.countLeft(rewrittenBy(r))
		w.Logf("%s: %d of %d are left; held: %s", r.writer, left, *rewritten, status(held, "message"))
		if gone := *rewritten - left; gone > limit {
			w.Errorf("%s: %d objects were deleted, and %d are the limit", r.writer, gone, limit)
		}
	}
	w.Log(w.heldNames())
}

// settleRewritten has a person decide about every other one of some of them, and the others are repaired. It returns the rest.
func (w *fixture) settleRewritten(all []rewriting, which func(*rewriting) bool) (rest []rewriting) {
	w.Helper()
	repaired := map[string][]string{}
	for i := range all {
		r := &all[i]
		if !which(r) {
			rest = append(rest, *r)
			continue
		}
		names := w.stillThere(rewrittenBy(r))
		if i%2 == 1 {
			w.proceed(r.heldFor(), status(w.heldNow(r.heldFor()), "digest"))
			w.awaitGone(names...)
			continue
		}
		repaired[r.heldFor()] = names
		w.write("right", names, func(int) []metav1.OwnerReference { return []metav1.OwnerReference{w.reference("right")} })
	}
	for held, names := range repaired {
		w.awaitNotHeld(held)
		if left := w.countLeft(names); left != len(names) {
			w.Errorf("%s: %d are left after they were repaired, want %d", held, left, len(names))
		}
	}
	return rest
}
