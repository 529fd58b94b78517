package graph_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

var (
	seed  = flag.Uint64("seed", 0, "seed of the first random history; 0: from the clock")
	cases = flag.Int("cases", 1500, "number of random histories")
)

// TestRandomHistories plays random histories on the graph and the model.
func TestRandomHistories(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	n := *cases
	if testing.Short() {
		n = min(n, 300)
	}
	t.Logf("seed %d", first)
	events, verbs := 0, map[graph.Verb]int{}
	for i := range n {
		s := first + uint64(i)
		h, lines := randomHistory(rand.New(rand.NewPCG(s, 0)))
		events += h.events
		for _, a := range h.before {
			verbs[a.Verb]++
		}
		if h.broken != "" {
			t.Fatalf("seed %d: %s", s, report(h.broken, lines))
		}
	}
	t.Logf("%d histories, %d events; decisions at their ends: %v", n, events, verbs)
	for v := graph.Keep; v <= graph.Unfinalize; v++ {
		if n >= 300 && verbs[v] == 0 {
			t.Errorf("no history ends with the decision to %s: they do not try enough", v)
		}
	}
}

// dice is where choices come from: a random generator, or the bytes of a fuzzer.
type dice interface{ IntN(n int) int }

func randomHistory(d dice) (*history, []string) {
	h := newHistory()
	w := world{dice: d, h: h}
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

// world makes up lines about a few objects: so few that they meet each other often.
type world struct {
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
	somePlaces = []string{"x/n", "x/m", "y/n", "y/m", "n", "m"}
	someRefs   = []string{"ConfigMap", "Pod", "Node", "Widget", "Widget.v1beta1.example.com", "Widget.v9.example.com", "Event", "Gizmo.v1.example.com"}
	someServes = []string{
		"serve", "serve", "serve all -widgets", "serve all widgetz.example.com:Widget:v1",
		"serve all -widgets widgets.example.com:Widget:v1,v9:cluster", "serve all -widgets widgets.example.com:Widget:v1:uncollected",
		"serve all -pods", "serve all -nodes", "serve none",
	}
)

func pick[T any](d dice, from []T) T { return from[d.IntN(len(from))] }

func (w world) chance(percent int) bool { return w.IntN(100) < percent }

func (w world) line(before int) string {
	if before < 2 && w.chance(90) {
		return []string{"serve", "sync"}[before]
	}
	home := pick(w.dice, homes)
	switch n := w.IntN(100); {
	case n < 42:
		return w.see()
	case n < 52:
		return "gone " + home.kind + " " + home.uid
	case n < 60:
		return "look " + w.withVerb(func(v graph.Verb) bool { return v == graph.Look })
	case n < 68:
		return "answer " + home.uid + " " + pick(w.dice, []string{"absent", "absent", "present", "unanswered"})
	case n < 75:
		return "send " + w.withVerb(func(v graph.Verb) bool { return v > graph.Look })
	case n < 82:
		return "accept " + home.uid
	case n < 85:
		return "list " + pick(w.dice, someKinds) + " begin"
	case n < 88:
		return "list " + pick(w.dice, someKinds) + " end"
	case n < 90:
		return "list " + pick(w.dice, someKinds) + pick(w.dice, []string{" fail", " fail forbidden"})
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

// withVerb is an object about which that is decided, if there is one: most lines are to mean something.
func (w world) withVerb(which func(graph.Verb) bool) string {
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

func (w world) see() string {
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
	}{{"foregroundDeletion", 25}, {"example.com/f", 20}, {"orphan", 10}} {
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

func (w world) owner() string {
	home := pick(w.dice, homes)
	ref, place := home.ref, home.place
	if w.chance(12) {
		ref = pick(w.dice, someRefs)
	}
	if w.chance(6) {
		place = pick(w.dice, somePlaces)
	}
	name := place[strings.LastIndexByte(place, '/')+1:]
	return ref + "/" + name + "/" + home.uid +
		pick(w.dice, []string{"", "!block", "!block", "!unblock"}) + pick(w.dice, []string{"", "", "*controller", "*uncontroller"})
}
