package graph_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/internal/testkit/script"
	"github.com/weir-dev/weir/internal/testkit/sim"
)

var (
	seed   = flag.Uint64("seed", 0, "seed of the first random history; 0: from the clock")
	cases  = flag.Int("cases", 0, "number of random histories; 0: as many as begin within -for")
	within = flag.Duration("for", 2*time.Second,
		"how long histories are begun; a quarter of it those of simulated collectors")
)

// TestRandomHistories plays random histories on the graph and the model.
func TestRandomHistories(t *testing.T) {
	n, events, verbs := 0, 0, map[graph.Verb]int{}
	for i, s := range fixture.Seeds(*seed, *cases, *within) {
		if n++; i == 0 {
			t.Logf("seed %d", s)
		}
		events += playRandom(t, s, verbs)
	}
	t.Logf("%d histories, %d events; decisions at their ends: %v", n, events, verbs)
}

// TestRandomHistoriesEndWithEachDecision, sooner or later, in the same ones each time.
func TestRandomHistoriesEndWithEachDecision(t *testing.T) {
	verbs := map[graph.Verb]int{}
	for _, s := range fixture.Seeds(1, 300, 0) {
		playRandom(t, s, verbs)
		if len(verbs) == int(graph.Unfinalize-graph.Keep)+1 {
			return
		}
	}
	t.Errorf("300 histories end with the decisions %v alone: they do not try enough", verbs)
}

// playRandom counts the decisions at the end of a random history, and returns how many events it
// has.
func playRandom(t *testing.T, seed uint64, verbs map[graph.Verb]int) int {
	t.Helper()
	h, lines := randomHistory(rand.New(rand.NewPCG(seed, 0)))
	for _, a := range h.before {
		verbs[a.Verb]++
	}
	if h.broken != "" {
		t.Fatalf("seed %d: %s", seed, report(h.broken, lines))
	}
	return h.events
}

// TestModelFollowsSimulatedCollectors plays what collectors saw in the simulation: histories that
// make more sense than random ones, on more objects.
func TestModelFollowsSimulatedCollectors(t *testing.T) {
	n, events := 0, 0
	for i, s := range fixture.Seeds(*seed, *cases, *within/4) {
		if n++; i == 0 {
			t.Logf("seed %d", s)
		}
		lines, err := sim.Script(s, 600)
		if err != nil {
			t.Fatalf("seed %d: %v", s, err)
		}
		h := newHistory()
		for _, line := range lines {
			if _, err := h.Run(line); err != nil {
				t.Fatalf("seed %d: %s: %v", s, line, err)
			}
			if h.broken != "" {
				t.Fatalf("seed %d: %s", s, report(h.broken, lines))
			}
		}
		events += h.events
	}
	t.Logf("%d collectors, %d events", n, events)
}

// dice is where choices come from: a random generator, or the bytes of a fuzzer.
type dice interface{ IntN(n int) int }

func randomHistory(d dice) (*history, []string) {
	h := newHistory()
	w := author{dice: d, h: h}
	var lines []string
	for range 10 + d.IntN(60) {
		line := w.line(len(lines))
		lines = append(lines, line)
		h.Run(line) //nolint:errcheck // a line that does not apply is a line that does nothing
		if h.broken != "" {
			break
		}
	}
	return h, lines
}

// author makes up lines about a few objects: so few that they meet each other often.
type author struct {
	dice
	h *history
}

// home is where an object mostly is: kind, namespace and name, and how references call the kind.
var homes = []struct{ uid, kind, place, ref string }{
	{"a", "configmaps", "x/n", "ConfigMap"},
	{"b", "pods", "x/n", "Pod"},
	{"c", "pods", "x/m", "Pod"},
	{"d", "nodes", "n", "Node"},
	{"e", "widgets", "x/n", "Widget"},
	{"0f0e0d0c-0000-4000-8000-000000000001", "pods", "y/n", "Pod"},
	{"0f0e0d0c-0000-4000-8000-000000000002", "widgets", "y/m", "Widget"},
}

var (
	someKinds  = []string{"configmaps", "pods", "nodes", "widgets", "widgetz.example.com", "events"}
	somePlaces = []string{"x/n", "x/m", "y/n", "y/m", "n", "m", "x/kube-root-ca.crt"}
	someRefs   = []string{"ConfigMap", "Pod", "Node", "Widget", "Widget.v1beta1.example.com", "Widget.v9.example.com",
		"Event", "Gizmo.v1.example.com"}
	someServes = []string{
		"serve", "serve", "serve all -widgets", "serve all widgetz.example.com:Widget:v1",
		"serve all -widgets widgets.example.com:Widget:v1,v9:cluster",
		"serve all -widgets widgets.example.com:Widget:v1:uncollected",
		"serve all -pods", "serve all -nodes", "serve none",
	}
)

func pick[T any](d dice, from []T) T { return from[d.IntN(len(from))] }

func (w author) chance(percent int) bool { return w.IntN(100) < percent }

func (w author) line(before int) string {
	if before < 2 && w.chance(90) {
		return []string{"serve", "sync"}[before]
	}
	home := pick(w.dice, homes)
	switch n := w.IntN(100); {
	case n < 42:
		return w.see()
	case n < 44:
		return "unlisted " + home.kind + " " + home.uid
	case n < 52:
		return "gone " + home.kind + " " + home.uid
	case n < 60:
		return "look " + w.withVerb(func(v graph.Verb) bool { return v == graph.Lookup })
	case n < 68:
		return "answer " + home.uid + " " + pick(w.dice, []string{"absent", "absent", "present", "unanswered", "denied"})
	case n < 75:
		return "send " + w.withVerb(func(v graph.Verb) bool { return v > graph.Lookup })
	case n < 80:
		return "accept " + home.uid
	case n < 82:
		return "protect " + home.uid
	case n < 85:
		return "list " + pick(w.dice, someKinds) + " begin"
	case n < 88:
		return "list " + pick(w.dice, someKinds) + " end"
	case n < 89:
		return "list " + pick(w.dice, someKinds) + pick(w.dice, []string{" fail", " fail forbidden", " slow"})
	case n < 90:
		return w.outage()
	case n < 91 && w.chance(60):
		return "rule " + home.kind + " " + home.uid + " " +
			pick(w.dice, []string{"background", "foreground", "orphan", "orphan", "none"})
	case n < 91 && w.chance(20):
		return "holds " + pick(w.dice, []string{"example.com/held", "example.com/held", "example.com/held", "example.com/f"})
	case n < 91 && w.chance(50):
		return "remember " + home.kind + " " + home.uid + pick(w.dice, []string{" 0", " 1", " 3"})
	case n < 91:
		return "drain " + pick(w.dice, []string{"x", "y", "x off", "y off"})
	case n < 92:
		return "stop " + pick(w.dice, someKinds)
	case n < 94:
		return pick(w.dice, someServes)
	case n < 97:
		return pick(w.dice, []string{"recheck", "recheck 3", "recheck 64"})
	default:
		return "sync"
	}
}

// outage is what happens to watches, and to the server behind them.
func (w author) outage() string {
	home := pick(w.dice, homes)
	switch n := w.IntN(7); {
	case n < 3:
		return "behind " + pick(w.dice, someKinds)
	case n < 5:
		return "notfound " + home.kind + " " + home.uid + pick(w.dice, []string{"", "", " history=0"})
	case n < 6:
		return "rewind-kind " + pick(w.dice, someKinds)
	}
	return "rewind"
}

// withVerb is an object about which that is decided, if there is one: most lines are to mean
// something.
func (w author) withVerb(which func(graph.Verb) bool) string {
	var uids []types.UID
	for _, home := range homes {
		if a, ok := w.h.before[types.UID(home.uid)]; ok && which(a.Verb) {
			uids = append(uids, types.UID(home.uid))
		}
	}
	if len(uids) == 0 {
		return pick(w.dice, homes).uid
	}
	return string(pick(w.dice, uids))
}

// ring lets an object of one namespace wait, and block one or two others: cycles need several who
// do.
func (w author) ring() string {
	inX := []int{0, 1, 2, 4}
	home := homes[pick(w.dice, inX)]
	owner := homes[pick(w.dice, inX)]
	owners := ownerAt(owner.ref, owner.place, owner.uid) + "!block"
	if w.chance(30) {
		owners += ", " + w.owner()
	}
	return fmt.Sprintf("see %s %s uid=%s owners=(%s) finalizers=(foregroundDeletion)%s", home.kind, home.place, home.uid,
		owners, pick(w.dice, []string{" deleting", " deleting", " deleting", ""}))
}

// again shows an object as it is known, but for one thing.
func (w author) again(o graph.Object) string {
	o.Owners, o.Finalizers = slices.Clone(o.Owners), slices.Clone(o.Finalizers)
	o.ResourceVersion += "0"
	if len(o.Owners) > 0 {
		r := &o.Owners[w.IntN(len(o.Owners))]
		switch w.IntN(7) {
		case 0:
			r.APIVersion = pick(w.dice, []string{"v1", "example.com/v1", "example.com/v1beta1", "example.com/v9"})
		case 1:
			r.Kind = pick(w.dice, []string{"ConfigMap", "Pod", "Widget"})
		case 2:
			r.Name = pick(w.dice, []string{"n", "m"})
		case 3:
			r.UID = types.UID(pick(w.dice, homes).uid)
		case 4:
			r.BlockOwnerDeletion = pick(w.dice, []*bool{nil, ptr(true), ptr(false)})
		case 5:
			r.Controller = pick(w.dice, []*bool{nil, ptr(true), ptr(false)})
		}
	}
	switch w.IntN(4) {
	case 0:
		o.Deleting = true
	case 1:
		slices.Reverse(o.Owners)
	case 2:
		o.Finalizers = append(o.Finalizers, "example.com/g")
	}
	return script.Line(graph.Observed{Object: &o}, "", "")
}

func (w author) see() string {
	if w.chance(25) {
		return w.ring()
	}
	if known := w.h.model.objects; len(known) > 0 && w.chance(25) {
		return w.again(pick(w.dice, known).Object)
	}
	home := pick(w.dice, homes)
	kind, place := home.kind, home.place
	if w.chance(6) {
		kind = pick(w.dice, someKinds)
	}
	if w.chance(4) {
		place = pick(w.dice, somePlaces)
	}
	line := fmt.Sprintf("see %s %s uid=%s", kind, place, home.uid)
	if w.chance(10) {
		line += " rv=" + pick(w.dice, []string{"1", "2", "03", "0", "x"})
	}
	var owners []string
	for range pick(w.dice, []int{0, 1, 1, 1, 2, 2, 3}) {
		owners = append(owners, w.owner())
	}
	if len(owners) > 0 {
		line += " owners=(" + strings.Join(owners, ", ") + ")"
	}
	var finalizers []string
	for _, f := range []struct {
		name    string
		percent int
	}{{"foregroundDeletion", 25}, {"example.com/f", 20}, {"orphan", 10}, {"example.com/held", 25}} {
		if w.chance(f.percent) {
			finalizers = append(finalizers, f.name)
		}
	}
	if len(finalizers) > 0 {
		line += " finalizers=(" + strings.Join(finalizers, ", ") + ")"
	}
	if w.chance(35) {
		line += " deleting"
	}
	return line
}

func (w author) owner() string {
	home := pick(w.dice, homes)
	ref, place := home.ref, home.place
	if w.chance(12) {
		ref = pick(w.dice, someRefs)
	}
	if w.chance(6) {
		place = pick(w.dice, somePlaces)
	}
	return ownerAt(ref, place, home.uid) +
		pick(w.dice, []string{"", "!block", "!block", "!unblock"}) + pick(w.dice,
		[]string{"", "", "*controller", "*uncontroller"})
}

func ownerAt(ref, place, uid string) string {
	return ref + "/" + place[strings.LastIndexByte(place, '/')+1:] + "/" + uid
}
