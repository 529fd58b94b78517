package brake_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/controller/graph"
)

var (
	pods    = schema.GroupResource{Resource: "pods"}
	secrets = schema.GroupResource{Resource: "secrets"}
	widgets = schema.GroupResource{Group: "example.com", Resource: "widgets"}
	gadgets = schema.GroupResource{Group: "example.com", Resource: "gadgets"}
)

// bench is a ledger, and a clock for it.
type bench struct {
	*testing.T
	*brake.Ledger
	now    time.Time
	sizes  map[schema.GroupResource]int
	around bool // it wanted to know what else is to go when it last weighed an object
}

func newBench(t *testing.T, l brake.Limits) *bench {
	return &bench{T: t, Ledger: brake.NewLedger(l), now: time.Unix(0, 0),
		sizes: map[schema.GroupResource]int{pods: 1_000_000, secrets: 1_000_000}}
}

func action(kind, owners schema.GroupResource, uid string, inherited bool) graph.Action {
	return graph.Action{
		Verb: graph.Delete, Object: graph.Ref{Kind: kind, UID: types.UID(uid)},
		Inferred: graph.Inference{Conclusion: graph.OwnerNotFound, Owners: owners, Inherited: inherited},
	}
}

// answer asks about an object with which so many others of a kind go.
func (b *bench) answer(a graph.Action, with map[schema.GroupResource]int, others ...graph.Ref) brake.Answer {
	answer, _ := b.Ask(b.now, a, func(around bool) brake.Load {
		b.around = around
		load := brake.Load{Weight: []graph.Counted{{Kind: a.Object.Kind, Count: 1}}, Sizes: b.sizes, Others: others}
		for k, n := range with {
			load.Weight = append(load.Weight, graph.Counted{Kind: k, Count: n})
		}
		return load
	})
	return answer
}

// ask is answer after a pause, and tells whether the object may go.
func (b *bench) ask(a graph.Action, with map[schema.GroupResource]int, others ...graph.Ref) bool {
	answer := b.answer(a, with, others...)
	if answer == brake.Later {
		b.now = b.now.Add(brake.Pause)
		answer = b.answer(a, with, others...)
	}
	return answer == brake.Go
}

// many asks about so many pods, one after the other, and counts those that may go.
func (b *bench) many(owners schema.GroupResource, name string, n int) (went int) {
	for i := range n {
		if b.ask(action(pods, owners, fmt.Sprintf("%s-%d", name, i), false), nil) {
			went++
		}
	}
	return went
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limits brake.Limits
		sizes  int // of pods
		asked  int
		went   int
	}{
		"as many as may go":             {brake.DefaultLimits, 1_000_000, 5000, 5000},
		"one more":                      {brake.DefaultLimits, 1_000_000, 5001, 5000},
		"a tenth of the kind":           {brake.DefaultLimits, 6000, 600, 600},
		"more than a tenth":             {brake.DefaultLimits, 6000, 601, 600},
		"few, although they are all":    {brake.DefaultLimits, 500, 500, 500},
		"more than few, and all":        {brake.DefaultLimits, 501, 501, 500},
		"no limit":                      {brake.Limits{}, 10, 6000, 6000},
		"a share of nothing":            {brake.Limits{Most: 3}, 0, 5, 0},
		"a share of all limits nothing": {brake.Limits{Most: 10, Share: 1}, 20, 20, 10},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.limits)
			b.sizes[pods] = c.sizes
			if went := b.many(widgets, "p", c.asked); went != c.went {
				t.Errorf("%d of %d went, want %d", went, c.asked, c.went)
			}
		})
	}
}

func TestHeldIsOneKindOfOwners(t *testing.T) {
	b := newBench(t, brake.Limits{Most: 10, Objects: 10, Share: 1})
	if went := b.many(widgets, "w", 20); went != 10 {
		t.Errorf("%d went, want 10", went)
	}
	if went := b.many(gadgets, "g", 10); went != 10 {
		t.Errorf("owners of another kind: %d went, want 10", went)
	}
}

func TestWhatGoesWithAnObjectCounts(t *testing.T) {
	b := newBench(t, brake.DefaultLimits)
	if b.ask(action(pods, widgets, "a", false), map[schema.GroupResource]int{secrets: 5000}) {
		t.Error("5001 objects went")
	}
	if b.ask(action(pods, widgets, "b", false), nil) {
		t.Error("what is held was let go")
	}
}

func TestWhatFollowsIsNotCountedTwice(t *testing.T) {
	b := newBench(t, brake.DefaultLimits)
	if !b.ask(action(pods, widgets, "a", false), map[schema.GroupResource]int{secrets: 3000}) {
		t.Fatal("held")
	}
	for i := range 3000 {
		a := action(secrets, widgets, fmt.Sprint("s", i), true)
		if !b.ask(a, nil) {
			t.Fatalf("%d that follow were let go, want 3000", i)
		}
		b.Gone(a)
	}
	if went := b.many(widgets, "p", 5000); went != 1999 {
		t.Errorf("%d more went, want 1999", went)
	}
}

func TestWhatWasNotExpectedToFollowCounts(t *testing.T) {
	b := newBench(t, brake.DefaultLimits)
	went := 0
	for i := range 6000 {
		a := action(secrets, widgets, fmt.Sprint("s", i), true)
		if b.ask(a, nil) {
			went++
			b.Gone(a)
		}
	}
	if went != 5000 {
		t.Errorf("%d went, want 5000", went)
	}
}

func TestWhatComesAtOnceIsHeldAtOnce(t *testing.T) {
	b := newBench(t, brake.DefaultLimits)
	var others []graph.Ref
	for i := range 6000 {
		others = append(others, graph.Ref{Kind: pods, UID: types.UID(fmt.Sprint("p-", i))})
	}
	if b.ask(action(pods, widgets, "p-0", false), nil, others...) || !b.around {
		t.Errorf("the first of 6000 went, or it did not look around: %t", b.around)
	}
	// Those that were let through are not others.
	b = newBench(t, brake.DefaultLimits)
	if went := b.many(widgets, "p", 4900); went != 4900 || b.around {
		t.Fatalf("%d went, and it looked around for the last: %t", went, b.around)
	}
	if !b.ask(action(pods, widgets, "q", false), nil, others[:4950]...) || !b.around {
		t.Errorf("4951 were held, or it did not look around: %t", b.around)
	}
}

func TestThereIsAPauseBeforeTheNext(t *testing.T) {
	b := newBench(t, brake.DefaultLimits)
	if answer := b.answer(action(pods, widgets, "p-0", false), nil); answer != brake.Later {
		t.Errorf("the first: %d, want Later", answer)
	}
	b.ask(action(pods, gadgets, "first", false), nil)
	b.many(widgets, "p", 50)
	next := action(pods, widgets, "next", false)
	if answer := b.answer(next, nil); answer != brake.Later {
		t.Errorf("after 50: %d, want Later", answer)
	}
	if answer := b.answer(action(pods, gadgets, "other", false), nil); answer != brake.Go {
		t.Errorf("for another kind of owners: %d, want Go", answer)
	}
	b.now = b.now.Add(brake.Pause)
	if answer := b.answer(next, nil); answer != brake.Go || !b.around {
		t.Errorf("after the pause: %d, want Go, and to look around", answer)
	}
}

func TestAnObjectIsCountedOnce(t *testing.T) {
	b := newBench(t, brake.Limits{Most: 2, Objects: 2, Share: 1})
	for range 10 { // its request fails, and is made again
		if !b.ask(action(pods, widgets, "a", false), nil) {
			t.Fatal("held")
		}
	}
	if !b.ask(action(pods, widgets, "b", false), nil) || b.ask(action(pods, widgets, "c", false), nil) {
		t.Error("want two to go, and no more")
	}
}

func TestWhatIsLongAgoDoesNotCount(t *testing.T) {
	b := newBench(t, brake.DefaultLimits)
	for hour := range 10 {
		if went := b.many(widgets, fmt.Sprint("p", hour), 4000); went != 4000 {
			t.Errorf("hour %d: %d went, want 4000", hour, went)
		}
		b.now = b.now.Add(61 * time.Minute)
		b.Tidy(b.now)
	}
	// But within an hour all counts, in whatever window.
	b.many(widgets, "q", 3000)
	b.now = b.now.Add(31 * time.Minute)
	if went := b.many(widgets, "r", 3000); went != 2000 {
		t.Errorf("%d went, want 2000", went)
	}
}

// TestAllKindsOfOwnersCountTogether for ten minutes: a client may write nonsense about owners of
// many kinds, and after a start nearly all is inferred. What is held is not counted beside the rest.
func TestAllKindsOfOwnersCountTogether(t *testing.T) {
	for after, want := range map[time.Duration]int{0: 5000, 9 * time.Minute: 5000, 20 * time.Minute: 6000} {
		b := newBench(t, brake.DefaultLimits)
		went := b.many(widgets, "w", 3000)
		b.now = b.now.Add(after)
		if went += b.many(gadgets, "g", 3000); went != want {
			t.Errorf("%s later: %d went, want %d", after, went, want)
		}
		if why := b.Why(gadgets); want == 5000 && why != "more than 5000 objects would be deleted, for owners of all kinds within ten minutes" {
			t.Errorf("held because %q", why)
		}
	}
	b := newBench(t, brake.DefaultLimits)
	b.many(widgets, "v", 5001) // held, by itself
	if went := b.many(gadgets, "h", 5000); went != 5000 {
		t.Errorf("beside what is held %d went, want 5000", went)
	}
	b = newBench(t, brake.DefaultLimits)
	went := b.many(widgets, "w", 3000)
	b.Rewound()
	if went += b.many(gadgets, "g", 3000); went != 5000 {
		t.Errorf("across a history that went back %d went, want 5000", went)
	}
}

// TestManyKindsOfFewCountTogether: no kind of owners comes to its limit by itself.
func TestManyKindsOfFewCountTogether(t *testing.T) {
	b := newBench(t, brake.Limits{Most: 20, Objects: 20, Share: 1})
	went := 0
	for i := range 60 {
		kind := schema.GroupResource{Group: "example.com", Resource: fmt.Sprint("kind", i%10)}
		if b.ask(action(pods, kind, fmt.Sprint("p", i), false), nil) {
			went++
		}
	}
	if went < 20 || went >= 60 {
		t.Errorf("%d of 60 went", went)
	}
}

func TestADecisionIsAboutWhatWasSeen(t *testing.T) {
	b := newBench(t, brake.Limits{Most: 1, Objects: 1, Share: 1})
	b.many(widgets, "p", 10)
	waits := func(uid string, inherited bool) bool {
		a := action(pods, widgets, uid, inherited)
		waits, _ := b.Stands(a.Object, a.Inferred)
		return waits
	}
	if waits("p-0", false) || !waits("p-1", false) || !waits("p-9", false) {
		t.Error("the first went, and the others wait")
	}
	b.Decided(widgets, []types.UID{"p-1", "p-2"})
	b.Decided(gadgets, []types.UID{"p-3"}) // nothing is held there
	if !b.ask(action(pods, widgets, "p-1", false), map[schema.GroupResource]int{secrets: 2}) || !b.ask(action(pods, widgets, "p-2", false), nil) {
		t.Error("what was decided about does not go")
	}
	if b.ask(action(pods, widgets, "p-3", false), nil) || !waits("p-3", false) || waits("p-1", false) {
		t.Error("what was not decided about goes")
	}
	for i := range 3 { // what was known to follow does; a third one is news
		a := action(secrets, widgets, fmt.Sprint("s", i), true)
		if went := b.ask(a, nil); went != (i < 2) {
			t.Errorf("follower %d went: %t", i, went)
		} else if went {
			b.Gone(a)
		}
	}
	b.Ends(widgets)
	if waits("p-3", false) || !b.ask(action(pods, widgets, "p-3", false), nil) {
		t.Error("the hold has ended")
	}
}

// TestWhatWasAllowedBeforeARestoreCountsOnceMore: what a backup brings back has the uids of what
// was let through.
func TestWhatWasAllowedBeforeARestoreCountsOnceMore(t *testing.T) {
	b := newBench(t, brake.Limits{Most: 2, Objects: 2, Share: 1})
	b.many(widgets, "p", 2)
	b.Rewound()
	if went := b.many(widgets, "p", 2); went != 0 {
		t.Errorf("%d went that had been let go before, and the limit was reached", went)
	}
	b = newBench(t, brake.Limits{Most: 1, Objects: 1, Share: 1})
	b.many(widgets, "p", 3)
	b.Decided(widgets, []types.UID{"p-1", "p-2"})
	b.ask(action(pods, widgets, "p-1", false), map[schema.GroupResource]int{secrets: 2})
	b.Rewound()
	for _, a := range []graph.Action{action(pods, widgets, "p-1", false), action(pods, widgets, "p-2", false), action(secrets, widgets, "s", true)} {
		if waits, _ := b.Stands(a.Object, a.Inferred); b.ask(a, nil) || !waits {
			t.Errorf("%s goes by what was decided before", a.Object.UID)
		}
	}
}

func TestWhatWasHeldBeforeTheStartIsHeld(t *testing.T) {
	b := newBench(t, brake.DefaultLimits)
	b.Hold(b.now, widgets, b.now.Add(-time.Hour), "it was held before")
	if b.many(widgets, "w", 1) != 0 || b.many(gadgets, "g", 1) != 1 {
		t.Error("want owners of the kind held, and no others")
	}
	b.now = b.now.Add(24 * time.Hour)
	b.Tidy(b.now)
	if b.many(widgets, "x", 1) != 0 {
		t.Error("a hold was forgotten")
	}
}
