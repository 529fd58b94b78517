package graph_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/copied"
	"github.com/weir-dev/weir/internal/testkit/script"
)

// TestTenThousandReferencesOnOneObject takes them all through: present, gone, found by a look, and
// in another order.
func TestTenThousandReferencesOnOneObject(t *testing.T) {
	const n = 10_000
	g := emptyGraph()
	object := &graph.Object{Kind: podKind, UID: "dependent", Namespace: "x", Name: "dependent", ResourceVersion: "1"}
	owner := func(i int) types.UID { return uuid(uint64(i)) }
	for i := range n {
		object.Owners = append(object.Owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprint(i),
			UID: owner(i)})
		g.Apply(graph.Observed{Object: &graph.Object{Kind: mapKind, UID: owner(i), Namespace: "x", Name: fmt.Sprint(i),
			ResourceVersion: "1"}})
	}
	g.Apply(graph.Observed{Object: object})
	for i := range n - 1 {
		if dirty := g.Apply(graph.Gone{Kind: mapKind, UID: owner(i)}); !slices.Contains(dirty, object.UID) {
			t.Fatalf("owner %d went, and the dependent is not dirty", i)
		}
	}
	a := g.Decide(object.UID)
	if a.Verb != graph.Release || len(a.Owners) != 1 || a.Owners[0].UID != owner(n-1) {
		t.Errorf("with one owner left: %s, keeping %d", a, len(a.Owners))
	}
	if len(a.Why) > 300 {
		t.Errorf("the reason takes %d bytes", len(a.Why))
	}

	reversed := *object
	reversed.Owners = slices.Clone(object.Owners)
	slices.Reverse(reversed.Owners)
	g.Apply(graph.Observed{Object: &reversed})
	if a := g.Decide(object.UID); a.Verb != graph.Release || len(a.Owners) != 1 {
		t.Errorf("in another order: %s, keeping %d", a, len(a.Owners))
	}
	g.Apply(graph.Gone{Kind: mapKind, UID: owner(n - 1)})
	if a := g.Decide(object.UID); a.Verb != graph.Delete {
		t.Errorf("with no owner left: %s", a)
	}
	if err := g.Check(); err != nil {
		t.Error(err)
	}
	g.Apply(graph.Gone{Kind: podKind, UID: object.UID})
	if s := g.Stats(); s.Objects != 0 || s.Claims["absent"] != 0 {
		t.Errorf("something is left: %+v", s)
	}
}

// TestObjectWithMoreOwnersThanAreFollowed: it is kept, whatever becomes of those that are, until it
// has no more than these.
func TestObjectWithMoreOwnersThanAreFollowed(t *testing.T) {
	const n = 30_000
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "many", UID: "many",
		ResourceVersion: "1"}}
	for i := range n {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap",
			Name: fmt.Sprint(i), UID: uuid(uint64(i))})
	}
	g := emptyGraph()
	g.Apply(graph.Observed{Object: graph.ObjectOf(podKind, m)})
	claims := 0
	for _, n := range g.Stats().Claims {
		claims += n
	}
	if a := g.Decide("many"); claims != graph.MostOwners || a.Request() || a.Unresolvable != graph.TooManyOwners ||
		a.Why != "kept: it has 30000 owner references, and no more than 256 are followed" {
		t.Errorf("%d claims: %s", claims, a)
	}
	if !g.Shows(graph.ObjectOf(podKind, m)) || copied.Of(g).Decide("many").Why != g.Decide("many").Why {
		t.Error("the graph has another object, or its clone does")
	}
	for i := range graph.MostOwners {
		g.Apply(graph.Observed{Object: &graph.Object{Kind: mapKind, UID: uuid(uint64(i)), Namespace: "x",
			Name: fmt.Sprint(i), ResourceVersion: "1"}})
		g.Apply(graph.Gone{Kind: mapKind, UID: uuid(uint64(i))})
	}
	if a := g.Decide("many"); a.Request() {
		t.Errorf("all that are followed are gone: %s", a)
	}
	m.ResourceVersion, m.OwnerReferences = "2", m.OwnerReferences[:graph.MostOwners]
	if dirty := g.Apply(graph.Observed{Object: graph.ObjectOf(podKind, m)}); !slices.Contains(dirty, "many") ||
		g.Decide("many").Verb != graph.Delete {
		t.Errorf("it has no others any more: %s", g.Decide("many"))
	}
	if err := g.Check(); err != nil {
		t.Error(err)
	}
}

// TestManyObjectsInOneCycle is one ring of blocking references: whoever asks must not walk it over
// and over, and exactly one of them unblocks.
func TestManyObjectsInOneCycle(t *testing.T) {
	const n = 500
	g := emptyGraph()
	yes := true
	member := func(i int) *graph.Object {
		next := (i + 1) % n
		return &graph.Object{
			Kind: podKind, UID: uuid(uint64(i)), Namespace: "x", Name: fmt.Sprint(i), ResourceVersion: "1",
			Owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: fmt.Sprint(next), UID: uuid(uint64(next)),
				BlockOwnerDeletion: &yes}},
		}
	}
	for i := range n {
		g.Apply(graph.Observed{Object: member(i)})
	}
	for i := range n {
		o := member(i)
		o.Deleting, o.Finalizers, o.ResourceVersion = true, []string{metav1.FinalizerDeleteDependents}, "2"
		g.Apply(graph.Observed{Object: o})
	}
	var lead []types.UID
	for i := range n {
		if g.Decide(uuid(uint64(i))).Verb == graph.Unblock {
			lead = append(lead, uuid(uint64(i)))
		}
	}
	if len(lead) != 1 {
		t.Errorf("%d of %d unblock", len(lead), n)
	}
	if err := g.Check(); err != nil {
		t.Error(err)
	}
}

// TestOrphansAreRememberedUpToABound: the oldest are forgotten first, and forgetting is asking.
func TestOrphansAreRememberedUpToABound(t *testing.T) {
	const bound = 1 << 16
	g := emptyGraph()
	owner := func(i int) types.UID { return uuid(uint64(i)) }
	for i := range bound + 1 {
		g.Apply(graph.Observed{Object: &graph.Object{
			Kind: mapKind, UID: owner(i), Namespace: "x", Name: "o", ResourceVersion: "1", Deleting: true,
			Finalizers: []string{metav1.FinalizerOrphanDependents},
		}})
		g.Apply(graph.Gone{Kind: mapKind, UID: owner(i)})
	}
	for i, want := range map[int]graph.Verb{0: graph.Lookup, 1: graph.Release, bound: graph.Release} {
		late := types.UID(fmt.Sprint("late", i))
		g.Apply(graph.Observed{Object: &graph.Object{
			Kind: podKind, UID: late, Namespace: "x", Name: string(late), ResourceVersion: "1",
			Owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: owner(i)}},
		}})
		if a := g.Decide(late); a.Verb != want {
			t.Errorf("dependent of orphaning owner %d of %d: %s, not %s", i, bound, a, want)
		}
	}
}

// TestAnEmptiedGraphIsEmpty: nothing stays behind in any index, and ids are used again.
func TestAnEmptiedGraphIsEmpty(t *testing.T) {
	g := emptyGraph()
	for round := range 3 {
		for n := range 20 {
			for _, o := range branch(n) {
				g.Apply(graph.Observed{Object: o})
			}
		}
		for _, k := range g.Stats().Kinds {
			g.Apply(graph.Stopped{Kind: k.GroupResource()})
		}
		s := g.Stats()
		for verdict, n := range s.Claims {
			if n != 0 {
				t.Errorf("round %d: %d claims are %s", round, n, verdict)
			}
		}
		if views, next := g.Views(0, 10); s.Objects != 0 || len(views) != 0 || next != 0 {
			t.Errorf("round %d: %d objects, %d views, cursor %d", round, s.Objects, len(views), next)
		}
		if err := g.Check(); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
}

// TestManyOwnersThatOnlyLookupsFindAreAskedAboutSlowly: 100,000 owners of a kind that is not
// watched, each of its own dependent. None is forgotten, and no round makes a storm. Likewise with
// lookups that fail.
func TestManyOwnersThatOnlyLookupsFindAreAskedAboutSlowly(t *testing.T) {
	const n = 100_000
	for name, c := range map[string]struct {
		answer graph.Answer
		most   int // lookups in a round
		within int // rounds in which each is asked again
	}{
		"found":   {graph.Present, 20, 64 + n/16 + 1},
		"failing": {graph.Unanswered, 64, 1 + n/64 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := emptyGraph()
			for i := range n {
				g.Apply(graph.Observed{Object: &graph.Object{
					Kind: podKind, UID: uuid(uint64(i)), Namespace: "x", Name: fmt.Sprint(i), ResourceVersion: "1",
					Owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Event", Name: fmt.Sprint(i), UID: uuid(uint64(n + i))}},
				}})
			}
			look := func(uid types.UID) bool {
				a := g.Decide(uid)
				if a.Verb != graph.Lookup {
					return false
				}
				g.Apply(graph.LookupStarted{Claim: a.Claim})
				g.Apply(graph.LookupAnswered{Claim: a.Claim, Answer: c.answer, Reason: "it is the test's wish"})
				return true
			}
			for _, uid := range script.UIDs(g) {
				if !look(uid) {
					t.Fatalf("%s is not to be looked at: %s", uid, g.Decide(uid))
				}
			}
			again := map[types.UID]int{}
			peak := 0
			for round := range uint64(c.within) {
				asked := 0
				for _, uid := range g.Apply(graph.Recheck{Round: round + 1}) {
					if look(uid) {
						asked++
						again[uid]++
					}
				}
				peak = max(peak, asked)
			}
			if peak > c.most || peak == 0 {
				t.Errorf("%d lookups in one round, more than %d", peak, c.most)
			}
			if len(again) != n {
				t.Errorf("of %d owners %d were asked about again within %d rounds", n, len(again), c.within)
			}
		})
	}
}

// TestOwnersThatLookupsFindAreAskedAboutLessAndLessOften, down to once in 1,024 rounds.
func TestOwnersThatLookupsFindAreAskedAboutLessAndLessOften(t *testing.T) {
	g := emptyGraph()
	g.Apply(graph.Observed{Object: &graph.Object{
		Kind: podKind, UID: "p", Namespace: "x", Name: "p", ResourceVersion: "1",
		Owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Event", Name: "e", UID: "e"}},
	}})
	var gaps []int
	since := 0
	for round := uint64(1); len(gaps) < 7 && round < 10_000; round++ {
		if a := g.Decide("p"); a.Verb == graph.Lookup {
			gaps = append(gaps, since)
			since = 0
			g.Apply(graph.LookupStarted{Claim: a.Claim})
			g.Apply(graph.LookupAnswered{Claim: a.Claim, Answer: graph.Present})
		}
		g.Apply(graph.Recheck{Round: round})
		since++
	}
	if want := []int{0, 64, 128, 256, 512, 1024, 1024}; !slices.Equal(gaps, want) {
		t.Errorf("rounds between lookups: %v, want %v", gaps, want)
	}
}

// TestObjectsThatAllBlockEachOther: n objects make n² references, and each change of one of them
// could ask all of them again, each of which would follow them all. Beyond a bound they are not
// followed; then each gives up its claim to block, and all end.
func TestObjectsThatAllBlockEachOther(t *testing.T) {
	const n = 200
	yes := true
	member := func(i int, deleting bool) *graph.Object {
		o := &graph.Object{Kind: podKind, UID: uuid(uint64(i)), Namespace: "x", Name: fmt.Sprint(i), ResourceVersion: "1"}
		for other := range n {
			if other != i {
				o.Owners = append(o.Owners, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: fmt.Sprint(other),
					UID: uuid(uint64(other)), BlockOwnerDeletion: &yes})
			}
		}
		if deleting {
			o.Deleting, o.Finalizers, o.ResourceVersion = true, []string{metav1.FinalizerDeleteDependents}, "2"
		}
		return o
	}
	g := emptyGraph()
	for i := range n {
		g.Apply(graph.Observed{Object: member(i, false)})
	}
	live := member(0, false)
	live.Owners = live.Owners[1:]
	if dirty := g.Apply(graph.Observed{Object: live}); len(dirty) > 2 {
		t.Errorf("one of %d gave up a reference, and %d are to be decided again", n, len(dirty))
	}
	g.Apply(graph.Observed{Object: member(0, false)})

	objects := map[types.UID]*graph.Object{}
	todo := map[types.UID]bool{}
	apply := func(e graph.Event) {
		for _, uid := range g.Apply(e) {
			todo[uid] = true
		}
	}
	for i := range n {
		objects[uuid(uint64(i))] = member(i, true)
		apply(graph.Observed{Object: objects[uuid(uint64(i))]})
	}
	decided, requests := 0, map[graph.Verb]int{}
	for len(todo) > 0 {
		uid := slices.Min(slices.Collect(maps.Keys(todo)))
		delete(todo, uid)
		o := objects[uid]
		if o == nil {
			continue
		}
		a := g.Decide(uid)
		if decided++; decided > 10*n*n {
			t.Fatalf("decided %d times, and %d of %d are left: %s", decided, len(objects), n, a)
		}
		if !a.Request() {
			continue
		}
		requests[a.Verb]++
		switch a.Verb {
		case graph.Unblock:
			next := *o
			next.Owners, next.ResourceVersion = a.Owners, "3"
			objects[uid] = &next
			apply(graph.Observed{Object: &next})
		case graph.Unfinalize:
			delete(objects, uid)
			apply(graph.Gone{Kind: podKind, UID: uid})
		default:
			t.Fatalf("%s: %s", uid, a)
		}
	}
	t.Logf("decided %d times; requests %v", decided, requests)
	if len(objects) != 0 {
		t.Errorf("%d of %d wait for ever; %s", len(objects), n, g.Decide(slices.Min(slices.Collect(maps.Keys(objects)))))
	}
	if requests[graph.Unblock] > n {
		t.Errorf("%d objects were unblocked %d times", n, requests[graph.Unblock])
	}
}

// TestObjectWithMoreReferencesThanAreFollowed: none of them blocks, so it holds up no owner, and
// waits for what depends on it.
func TestObjectWithMoreReferencesThanAreFollowed(t *testing.T) {
	g, yes := emptyGraph(), true
	object := &graph.Object{Kind: podKind, UID: "wide", Namespace: "x", Name: "wide", ResourceVersion: "1",
		Deleting: true, Finalizers: []string{metav1.FinalizerDeleteDependents}}
	for i := range 20_001 {
		object.Owners = append(object.Owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprint(i),
			UID: uuid(uint64(i))})
	}
	g.Apply(graph.Observed{Object: object})
	g.Apply(graph.Observed{Object: &graph.Object{Kind: podKind, UID: "leaf", Namespace: "x", Name: "leaf",
		ResourceVersion: "1", Deleting: true, Finalizers: []string{"example.com/hold"},
		Owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "wide", UID: "wide",
			BlockOwnerDeletion: &yes}}}})
	if a := g.Decide("wide"); a.Verb != graph.Wait {
		t.Errorf("%s: %s", a.Verb, a.Why)
	}
}
