package e2e

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// meanwhileObjects is how much there is to do while something changes. make test has a part of what issue 12 asks for: 10,000 dependents that
// are to be kept, and 5,000 objects that terminate.
var meanwhileObjects = flag.Int("meanwhile.objects", 200, "dependents that are to be kept while others come; half as many objects terminate while their policy changes")

// What terminates can be written, and finalizers of others can still come off, but none can be put back.
func TestEnforcedObjectThatIsWrittenAllTheTimeEnds(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan"))
		w.awaitStamping("cm")
		w.make(`
			cm  written
			sec kept owners=(written!block)
		`)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		writes := make(chan int)
		go func() { writes <- w.keepWriting(ctx, "written") }()
		w.until("it is written", func(context.Context) (bool, error) { return w.get("written").GetAnnotations()["n"] > "2", nil })
		w.delete("written", background)
		w.awaitGone("written")
		stop()
		t.Logf("it was written %d times", <-writes)
		w.mustStay("kept")
		w.awaitOwners("kept", "")
	})
}

// A controller that puts Weir's finalizer back, whenever it is not there, holds nothing up: the API server takes no finalizer for what terminates.
func TestFinalizerThatIsPutBackHoldsNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan"))
		w.awaitStamping("cm")
		w.make(`
			cm  one finalizers=(example.com/hold)
			sec kept owners=(one!block)
		`)
		w.awaitFinalizers("one", "example.com/hold", finalizer)
		w.delete("one", background)
		w.awaitFinalizers("one", "example.com/hold") // Weir's work is done
		w.awaitOwners("kept", "")
		o := w.of("one")
		_, err := w.at(o).Patch(t.Context(), o.name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"finalizers":["example.com/hold",%q]}}`, finalizer), metav1.PatchOptions{})
		if err == nil {
			t.Log("the API server took it: Weir has to take it off again")
		} else if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		w.unfinalize("one")
		w.awaitGone("one")
		w.mustStay("kept")
	})
}

// What refuses the request for which a deletion waits is named on the object, and once it is gone the deletion ends.
func TestRefusalOfTheLastRequestIsToldAndEnds(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [secrets]}]
    HERE
  propagation: {default: Foreground}`)
		w.awaitStamping("sec")
		w.make("sec refused")
		refuses := w.refuseOfSecrets(admissionregistrationv1.Update)
		w.until("updates are refused", func(ctx context.Context) (bool, error) {
			o := w.of("refused")
			_, err := w.at(o).Patch(ctx, o.name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			return err != nil && strings.Contains(err.Error(), "secrets stay as they are"), nil
		})
		w.delete("refused", background)
		e := w.awaitEvent("refused", "CollectionRefused")
		w.mustSay(e.Message, "secrets stay as they are")
		if err := w.typed.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), refuses, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.awaitGone("refused")
	})
}

// Many dependents are to be kept, others come while these are released, and the rest goes: none goes that was there before the delete. One that
// comes in the instant before its owner goes is collected, as it is where it comes after that: no watch has told of it yet.
func TestManyDependentsAreKeptWhileOthersCome(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		n := *meanwhileObjects
		w.policy("DeletionPolicy", keeping("secrets", `
    default: Background`))
		w.awaitStamping("sec")
		w.make(`
			sec boss
			rc  leaf owners=(boss!block)
		`)
		kept := numbered("kept", n)
		w.makeOwned("cm", kept, "boss")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		coming := make(chan []object)
		boss := w.of("boss")
		go func() { coming <- w.keepMaking(ctx, "cm", boss) }()
		w.delete("boss", background)
		w.awaitGone("boss", "leaf")
		stop()
		came := <-coming
		t.Logf("%d were there, %d came", n, len(came))
		for _, o := range came {
			w.made[o.name] = o
		}
		w.settle()
		w.mustLive("cm", kept)
		w.until("none has an owner", func(ctx context.Context) (bool, error) {
			done, err := w.done(ctx, kept)
			return done == len(kept), err
		})
	})
}

// The policy changes, cannot be judged, and goes, while objects terminate: those that it holds say so, each ends, and no reference to an owner
// that is gone is left.
func TestPolicyThatChangesWhileObjectsTerminate(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		n := *meanwhileObjects / 2
		name := w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan"))
		w.awaitStamping("cm")
		owners, children := numbered("owner", n), numbered("child", n)
		w.makeAll(owners, children)
		change := func(patch string) {
			t.Helper()
			if _, err := w.dynamic.Resource(policyResources["DeletionPolicy"]).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		// Weir's own requests are not judged: what the policy has become holds nothing up before the object terminates.
		config := rest.CopyConfig(w.plane.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: weirUser, Groups: []string{"system:masters"}}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		drop := func(owners []string) *errgroup.Group {
			group := &errgroup.Group{}
			for part := range slices.Chunk(owners, max(1, len(owners)/16)) {
				group.Go(func() error {
					for _, owner := range part {
						o := w.of(owner)
						err := client.Resource(o.gvr()).Namespace(o.namespace).Delete(t.Context(), o.name, metav1.DeleteOptions{PropagationPolicy: new(background), Preconditions: &metav1.Preconditions{UID: &o.uid}})
						if err != nil {
							return err
						}
					}
					return nil
				})
			}
			return group
		}
		first := drop(owners[:n/2])
		w.awaitLeft(owners[:n/2], n/2-n/10)
		change(`{"spec":{"propagation":{"default":"Foreground"}}}`)
		if err := first.Wait(); err != nil {
			t.Fatal(err)
		}
		// It fails for each object, and under Fail nothing is done that cannot be judged.
		change(`{"spec":{"failurePolicy":"Fail","match":{"conditions":[{"name":"fails","expression":"oldObject.data.there == 'no'"}]}}}`)
		w.awaitCondition("DeletionPolicy", name, "Ready", metav1.ConditionTrue)
		if err := drop(owners[n/2:]).Wait(); err != nil {
			t.Fatal(err)
		}
		e := w.awaitEvent(owners[n-1], "DeletionHeld")
		w.mustSay(e.Message, name)
		w.mustBeThere(owners[n-1])
		w.unpolicy("DeletionPolicy", name)
		w.awaitGone(owners...)
		w.settle()
		list, err := w.at(w.of(children[0])).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if refs := list.Items[i].GetOwnerReferences(); len(refs) > 0 {
				t.Errorf("%s is still owned by %s", list.Items[i].GetName(), ownersText(refs))
			}
		}
		t.Logf("%d of %d dependents were kept", len(list.Items), n)
	})
}

// makeOwned makes many objects of a kind that one owns, and blocks.
func (w *world) makeOwned(short string, names []string, owner string) {
	w.Helper()
	ref := w.reference(owner + "!block")
	var group errgroup.Group
	group.SetLimit(32)
	made := make([]object, len(names))
	for i, name := range names {
		group.Go(func() (err error) {
			made[i], err = w.makeOne(w.Context(), short, name, ref)
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

func (w *world) makeOne(ctx context.Context, short, name string, owner metav1.OwnerReference) (object, error) {
	k := w.kinds[short]
	manifest, err := k.manifest(name, []metav1.OwnerReference{owner}, nil)
	if err != nil {
		return object{}, err
	}
	o := object{kind: k, namespace: w.namespace, name: name}
	made, err := w.at(o).Create(ctx, manifest, metav1.CreateOptions{})
	if err == nil {
		o.uid = made.GetUID()
	}
	return o, err
}

// mostComing bounds the dependents that come while others are released: on a slow machine they would come for as long as the owner is there.
const mostComing = 100

// keepMaking makes dependents of an object, one after the other, until ctx ends or the owner has gone. Those are returned that were made while it
// was there.
func (w *world) keepMaking(ctx context.Context, short string, of object) (made []object) {
	ref := of.reference()
	ref.BlockOwnerDeletion = new(true)
	for i := 0; i < mostComing && ctx.Err() == nil; i++ {
		o, err := w.makeOne(ctx, short, fmt.Sprintf("came-%d", i), ref)
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

// mustLive looks, with one list, whether objects of a kind are there and are not being deleted.
func (w *world) mustLive(short string, names []string) {
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
