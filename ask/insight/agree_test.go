package insight

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/testkit/script"
)

// ownersThere are the owners of an object that count, and are not being deleted in a way that lets
// it go.
func ownersThere(w *World, uid types.UID) (out []types.UID) {
	v, _ := w.Graph.Find(uid)
	for _, o := range v.Owners {
		if o.Verdict == "present" && !slices.Contains(out, o.UID) {
			out = append(out, o.UID)
		}
	}
	return out
}

// outcomeOf is what a plan makes of an object when some are deleted.
func outcomeOf(w *World, uid types.UID, roots ...types.UID) Outcome {
	for _, i := range w.Clone().Plan(Deletion{Roots: roots, Propagation: metav1.DeletePropagationBackground}).Items {
		if i.UID == uid {
			return i.Outcome
		}
	}
	return ""
}

// TestWhyAndPlanAgree: who is told that an object stays as long as its owners finds in the plan
// that it goes with them, and who is told that it stays whatever its owners do finds that it does.
func TestWhyAndPlanAgree(t *testing.T) {
	told := map[string]int{}
	try := func(t *testing.T, rng *rand.Rand) {
		w := settled(rng)
		for _, uid := range script.UIDs(w.Graph) {
			v, _ := w.Graph.Find(uid)
			owners := ownersThere(w, uid)
			if v.Deleting || slices.Contains(owners, uid) {
				continue
			}
			a, ok := w.Clone().Why(uid, Facts{}, noon)
			if !ok || len(a.Causes) == 0 {
				t.Fatalf("nothing is said of %s", uid)
			}
			what, _, _ := strings.Cut(a.Causes[0].What, ":")
			told[what]++
			all := outcomeOf(w, uid, owners...)
			switch what {
			case "nothing owns it", "a reference to an owner cannot be resolved, so it is kept", "it stays even without its owner, because a reference to another owner cannot be resolved":
				if all == Deleted {
					t.Errorf("%s is deleted, and why says: %s", uid, a.Causes[0].What)
				}
			case "it stays as long as its owner exists", "it stays as long as one of its owners exists":
				if all != Deleted && all != Stuck {
					t.Errorf("%s fares like this when all its owners go: %q; and why says: %s", uid, all, a.Causes[0].What)
				}
				if strings.Contains(what, "one of") != (len(owners) > 1) {
					t.Errorf("%s has %d owners, and why says: %s", uid, len(owners), a.Causes[0].What)
				}
			default:
				t.Errorf("%s: nothing is to be done, and why says: %s", uid, a.Causes[0].What)
			}
		}
		if t.Failed() {
			t.Log(script.Dump(w.Graph))
		}
	}
	eachSeed(t, try)
	for s := uint64(1); len(told) < 5 && s <= 200; s++ { // the same ones each time
		try(t, rand.New(rand.NewPCG(s, 0)))
	}
	if len(told) < 5 {
		t.Errorf("only these were told: %v", told)
	}
}

// TestWhyAndOrphansAgree: about what is to be deleted, loses a reference, or cannot be determined.
func TestWhyAndOrphansAgree(t *testing.T) {
	eachSeed(t, func(t *testing.T, rng *rand.Rand) {
		w := randomCluster(rng)
		fates := map[types.UID]string{}
		for _, o := range w.Clone().Orphans() {
			fates[o.UID] = o.Fate
		}
		for _, uid := range script.UIDs(w.Graph) {
			v, _ := w.Graph.Find(uid)
			if v.Deleting {
				if fates[uid] != "" {
					t.Errorf("%s is being deleted, and an orphan", uid)
				}
				continue
			}
			a, _ := w.Clone().Why(uid, Facts{}, noon)
			want := ""
			for _, c := range []struct{ says, fate string }{
				{"so it will be deleted", "delete"}, {"its references to them will be removed", "release"}, {"so it is kept", "keep"},
			} {
				if strings.Contains(a.Causes[0].What, c.says) {
					want = c.fate
				}
			}
			awaited := strings.Contains(a.Causes[0].What, "being deleted foreground")
			if fates[uid] != want && (!awaited || fates[uid] != "") {
				t.Errorf("%s: among the orphans with the fate %q, and why says: %s\n%s", uid, fates[uid], a.Causes[0].What, script.Dump(w.Graph))
			}
		}
	})
}

// TestWhyAndPendingAgree: on what is being deleted, and on who has to act; and an object is told
// once for each of these.
func TestWhyAndPendingAgree(t *testing.T) {
	eachSeed(t, func(t *testing.T, rng *rand.Rand) {
		w := randomCluster(rng)
		byObject := map[types.UID][]string{}
		for _, g := range w.Clone().Pending(noon) {
			for _, i := range g.Items {
				byObject[i.UID] = append(byObject[i.UID], g.Actor)
			}
		}
		for _, uid := range script.UIDs(w.Graph) {
			a, _ := w.Clone().Why(uid, Facts{}, noon)
			var actors []string
			if a.Deleting {
				for _, c := range a.Causes {
					actors = append(actors, c.Actor)
				}
			}
			slices.Sort(actors)
			pending := slices.Sorted(slices.Values(byObject[uid]))
			if !slices.Equal(slices.Compact(actors), slices.Compact(pending)) {
				t.Errorf("%s waits for %q, and why says %q", uid, pending, actors)
			}
		}
	})
}

// TestTreeLeavesNothingOut: of what owns an object, directly or not, and of what depends on it; and
// what the plan deletes with it is in the tree, but for what waited for it, being deleted already.
func TestTreeLeavesNothingOut(t *testing.T) {
	eachSeed(t, func(t *testing.T, rng *rand.Rand) {
		w := settled(rng)
		uids := slices.Sorted(slices.Values(script.UIDs(w.Graph)))
		if len(uids) == 0 {
			return
		}
		asked := pick(rng, uids...)
		above, below := reached(w, asked, true), reached(w, asked, false)
		want, got := union(above, below), map[types.UID]bool{}
		for _, o := range drawnObjects(w.Clone().Tree(asked, noon)) {
			if got[o.UID] {
				t.Errorf("tree of %s: %s is drawn twice", asked, o.UID)
			}
			got[o.UID] = true
		}
		if missing, more := without(want, got), without(got, want); len(missing)+len(more) > 0 {
			t.Errorf("tree of %s: lacks %q, and has %q besides", asked, missing, more)
		}
		items := w.Clone().Plan(Deletion{Roots: []types.UID{asked}, Propagation: metav1.DeletePropagationBackground}).Items
		waited := slices.ContainsFunc(items, func(i *Item) bool { return i.Deleting && !below[i.UID] })
		for _, i := range items {
			if i.Outcome == Deleted && !below[i.UID] && !waited {
				t.Errorf("the plan of %s deletes %s, which does not hang below it", asked, i.UID)
			}
		}
		if t.Failed() {
			t.Log(script.Dump(w.Graph))
		}
	})
}

// reached is an object with all of its owners, or of its dependents, directly or not.
func reached(w *World, from types.UID, up bool) map[types.UID]bool {
	met, todo := map[types.UID]bool{from: true}, []types.UID{from}
	for len(todo) > 0 {
		v, _ := w.Graph.Find(todo[0])
		todo = todo[1:]
		var next []types.UID
		for _, o := range v.Owners {
			if up && owns(o.Verdict) {
				next = append(next, o.UID)
			}
		}
		if !up {
			for _, d := range w.Graph.Dependents(v.UID) {
				next = append(next, d.UID)
			}
		}
		for _, uid := range next {
			if !met[uid] {
				met[uid] = true
				todo = append(todo, uid)
			}
		}
	}
	return met
}

func union(a, b map[types.UID]bool) map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, of := range []map[types.UID]bool{a, b} {
		for uid := range of {
			out[uid] = true
		}
	}
	return out
}

func without(all, others map[types.UID]bool) (out []types.UID) {
	for uid := range all {
		if !others[uid] {
			out = append(out, uid)
		}
	}
	slices.SortFunc(out, cmp.Compare)
	return out
}

// drawnObjects returns the objects of trees in the order in which they are drawn, each once.
func drawnObjects(roots []*Node) (out []Object) {
	for _, n := range roots {
		if !n.Again {
			out = append(out, n.Object)
		}
		out = append(out, drawnObjects(n.Dependents)...)
		out = append(out, drawnObjects(n.Content)...)
	}
	return out
}
