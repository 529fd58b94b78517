package e2e

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// meanwhileObjects is how much there is to do while something changes. make test has a part of what
// issue 12 asks for: 10,000 dependents that are to be kept, and 5,000 objects that terminate.
var meanwhileObjects = flag.Int("meanwhile.objects", 200, "dependents that are to be kept while others come; half as many objects terminate while their policy changes")

// A controller that writes whole objects as it knew them takes off what Weir, or the collector, has
// put on meanwhile: orphan, which says that dependents are to live. They live all the same, and the
// object goes.
func TestStaleCopyThatIsWrittenBackLosesNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", strings.ReplaceAll(strings.ReplaceAll(configMaps, "configmaps", "secrets"), "%s", "Orphan"))
		w.awaitFinalizerAdded("sec")
		w.make("sec one")
		kept := w.keptBy("one")
		w.settle()
		stale := w.get("one")
		stale.SetResourceVersion("") // it is not checked whether it is old
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		written := make(chan error, 1)
		began := make(chan struct{})
		times := 0
		go func() {
			for ; ; times++ {
				if times == 3 {
					close(began)
				}
				_, err := w.at(w.of("one")).Update(ctx, stale, metav1.UpdateOptions{})
				if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
					written <- err
					return
				}
			}
		}()
		<-began
		w.delete("one", background)
		w.awaitGone("one")
		if err := <-written; !apierrors.IsNotFound(err) {
			t.Errorf("it is written when it is gone: %v", err)
		}
		t.Logf("it was written %d times", times)
		w.mustHaveNoOwner(kept)
	})
}

// Many dependents are to be kept, others come while these are released, and the rest goes: none
// goes that was there before the delete. One that comes in the instant before its owner goes is
// collected, as it is where it comes after that: no watch has told of it yet. So of those that came
// the last ones may be gone, and only these: whatever came before one that is kept is kept as well.
func TestManyDependentsAreKeptWhileOthersCome(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		n := *meanwhileObjects
		w.policy("DeletionPolicy", keeping("secrets", `
    default: Background`))
		w.awaitFinalizerAdded("sec")
		w.make(`
			sec boss
			rc  leaf owners=(boss!block)
		`)
		kept, came := w.deleteWhileOthersCome(n)
		w.awaitGoneIn(patienceFor(n), "leaf")
		w.settle()
		left, err := w.left(t.Context(), came)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d were there, %d came, of which %d are kept", n, len(came), len(left))
		w.mustLive("cm", slices.Concat(kept, came[:len(left)]))
		w.mustHaveLost(w.of("boss"))
	})
}

// Where all are to be kept, and Weir collects, it remembers owners that have gone so: those that
// come after its end are kept as well.
func TestDependentsThatComeWhileAnEnforcedOrphanEndsAreKept(t *testing.T) {
	t.Parallel()
	w := newEnforced(t, replace)
	w.policy("DeletionPolicy", strings.ReplaceAll(strings.ReplaceAll(configMaps, "configmaps", "secrets"), "%s", "Orphan"))
	w.awaitFinalizerAdded("sec")
	w.make("sec boss")
	kept, came := w.deleteWhileOthersCome(*meanwhileObjects)
	t.Logf("%d were there, %d came", len(kept), len(came))
	w.makeOwned("cm", []string{"late"}, "boss")
	w.until("it is released", func(context.Context) (bool, error) { return w.owners("late") == "", nil })
	w.settle()
	w.mustLive("cm", append(slices.Concat(kept, came), "late"))
	w.mustHaveLost(w.of("boss"))
}

// deleteWhileOthersCome makes so many dependents of the object boss, deletes it, and makes more of them
// until it is gone.
func (w *fixture) deleteWhileOthersCome(n int) (kept, came []string) {
	w.Helper()
	kept = numbered("kept", n)
	w.makeOwned("cm", kept, "boss")
	ctx, stop := context.WithCancel(w.Context())
	defer stop()
	coming, boss := make(chan []object), w.of("boss")
	go func() { coming <- w.keepMaking(ctx, "cm", boss) }()
	w.delete("boss", background)
	w.awaitGoneIn(patienceFor(n), "boss")
	stop()
	for _, o := range <-coming {
		w.made[o.name] = o
		came = append(came, o.name)
	}
	return kept, came
}

// The policy changes, cannot be judged, and goes, while objects terminate: those that it holds say
// so, each ends, and no reference to an owner that is gone is left.
func TestPolicyThatChangesWhileObjectsTerminate(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		n := *meanwhileObjects / 2
		name := w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan"))
		w.awaitFinalizerAdded("cm")
		owners, children := numbered("owner", n), numbered("child", n)
		w.makeAll(owners, children)
		// Weir's own requests are not judged: what the policy has become holds nothing up before
		// the object terminates.
		var first sync.WaitGroup
		first.Go(func() { w.deleteAs(weirUser, owners[:n/2]) })
		w.awaitLeft(owners[:n/2], n/2-n/10)
		left, err := w.left(t.Context(), owners[:n/2])
		if err != nil {
			t.Fatal(err)
		}
		w.repolicy(name, `{"spec":{"propagation":{"default":"Foreground"}}}`)
		first.Wait()
		// It fails for each object, and under Fail nothing is done that cannot be judged.
		w.repolicy(name, `{"spec":{"failurePolicy":"Fail","match":{"matchConditions":[{"name":"fails","expression":"oldObject.data.there == 'no'"}]}}}`)
		w.awaitCondition("DeletionPolicy", name, "Valid", metav1.ConditionTrue)
		w.deleteAs(weirUser, owners[n/2:])
		// Of many at once, some of the Events are lost on the way; the first is not.
		e := w.awaitEvent(owners[n/2], "DeletionHeld")
		w.mustSay(e.Message, name)
		held := slices.Clone(owners[n/2:])
		w.mustBeThere(held...)
		w.mustLive("sec", children[n/2:])
		w.unpolicy("DeletionPolicy", name)
		w.awaitGoneIn(patienceFor(n), owners...)
		// What was held until there was no policy goes as if there had been none; what went before
		// the first change went by Orphan.
		w.awaitGoneIn(patienceFor(n), children[n/2:]...)
		w.settle()
		var kept []string
		for i, owner := range owners[:n/2] {
			if !slices.Contains(left, owner) {
				kept = append(kept, children[i])
			}
		}
		w.mustLive("sec", kept)
		list, err := w.at(w.of(children[0])).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if refs := list.Items[i].GetOwnerReferences(); len(refs) > 0 {
				t.Errorf("%s is still owned by %s", list.Items[i].GetName(), ownersText(refs))
			}
		}
		t.Logf("%d of %d dependents were kept, %d of them since their owner had gone by then", len(list.Items), n, len(kept))
	})
}

// makeOwned makes many objects of a kind that one owns, and blocks.
func (w *fixture) makeOwned(short string, names []string, owner string) {
	w.Helper()
	ref := w.reference(owner + "!block")
	var group errgroup.Group
	group.SetLimit(32)
	made := make([]object, len(names))
	for i, name := range names {
		group.Go(func() (err error) {
			made[i], err = w.makeOne(w.Context(), short, name, []metav1.OwnerReference{ref})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		w.Fatal(err)
	}
	for _, o := range made {
		w.made[o.name] = o
	}
}

// patienceFor so many objects is as for few, and more for the many that a flag asks for.
func patienceFor(n int) time.Duration { return patience * time.Duration(1+n/2000) }

// mostComing bounds the dependents that come while others are released: on a slow machine they
// would come for as long as the owner is there.
func mostComing() int { return max(100, *meanwhileObjects/10) }

// keepMaking makes dependents of an object, one after the other, until ctx ends or the owner has
// gone. Those are returned that were made while it was there.
func (w *fixture) keepMaking(ctx context.Context, short string, of object) (made []object) {
	ref := of.reference()
	ref.BlockOwnerDeletion = new(true)
	for i := 0; i < mostComing() && ctx.Err() == nil; i++ {
		o, err := w.makeOne(ctx, short, fmt.Sprintf("came-%d", i), []metav1.OwnerReference{ref})
		if err != nil {
			if ctx.Err() == nil {
				w.Error(err)
			}
			return made
		}
		if found, err := w.at(of).Get(ctx, of.name, metav1.GetOptions{}); err != nil || found.GetUID() != of.uid {
			return made
		}
		made = append(made, o)
	}
	return made
}

// mustHaveLost looks whether no ConfigMap of the namespace names an owner any more.
func (w *fixture) mustHaveLost(owner object) {
	w.Helper()
	list, err := w.at(object{kind: w.kinds["cm"], namespace: w.namespace}).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for i := range list.Items {
		for _, r := range list.Items[i].GetOwnerReferences() {
			if r.UID == owner.uid {
				w.Errorf("%s is still owned by %s", list.Items[i].GetName(), owner.name)
			}
		}
	}
}

// mustLive looks, with one list, whether objects of a kind are there and are not being deleted.
func (w *fixture) mustLive(short string, names []string) {
	w.Helper()
	list, err := w.at(object{kind: w.kinds[short], namespace: w.namespace}).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	lives := map[types.UID]bool{}
	for i := range list.Items {
		lives[list.Items[i].GetUID()] = list.Items[i].GetDeletionTimestamp() == nil
	}
	lost := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return lives[w.of(name).uid] })
	if len(lost) > 0 {
		w.Errorf("%d of %d are gone, or are being deleted: %s", len(lost), len(names), strings.Join(lost[:min(len(lost), 10)], ", "))
	}
}
