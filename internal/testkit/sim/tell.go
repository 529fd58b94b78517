package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/script"
)

// busy are the objects that a message about no particular one is about.
func (w *cluster) busy() (uids []types.UID) {
	for _, o := range w.server.all() {
		if len(o.Owners) > 0 || o.Deleting {
			uids = append(uids, o.UID)
		}
	}
	return uids
}

// tell turns what did not hold into a message with the server's view and the script of the
// collector.
func (w *cluster) tell(c *collector, err error, uids ...types.UID) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s, after %d steps)\n\non the server:\n", err, c.name, w.stats["steps"]+w.stats["steps to settle"])
	for _, o := range w.server.all() {
		fmt.Fprintf(&b, "  %s\n", script.Line(graph.Observed{Object: &o.Object}, "", ""))
	}
	fmt.Fprintf(&b, "\nwhat the collector saw of it:\n\n")
	for _, l := range c.script(uids...) {
		fmt.Fprintf(&b, "%s\n----\n\n", l)
	}
	for _, uid := range uids {
		fmt.Fprintf(&b, "decide %s\n----\n%s\n\n", uid, cmp.Or(script.Decision(c.graph.Decide(uid)), "nothing"))
	}
	return fmt.Errorf("%s", b.String())
}

// script writes what happened to this collector as far as it concerns some objects: those that hang
// together with them, whatever they were called in between.
func (c *collector) script(uids ...types.UID) []string {
	concerned := c.concerned(uids)
	var out []string
	for _, l := range c.trace {
		switch ev := l.ev.(type) {
		case nil:
			if concerned[types.UID(l.who)] {
				out = append(out, "send "+l.who+" as="+l.label)
			}
			continue
		case graph.Observed:
			if !concerned[ev.Object.UID] {
				continue
			}
		case graph.Gone:
			if !concerned[ev.UID] {
				continue
			}
		case graph.Ruled:
			if !concerned[ev.UID] {
				continue
			}
		case graph.NotFound:
			if !concerned[ev.UID] {
				continue
			}
		case graph.LookupStarted, graph.LookupAnswered, graph.Accepted:
			if !concerned[types.UID(l.who)] {
				continue
			}
		}
		out = append(out, script.Line(l.ev, l.who, l.label))
	}
	return out
}

// concerned are the objects that owned or were owned by the given ones, directly or not.
func (c *collector) concerned(uids []types.UID) map[types.UID]bool {
	linked := map[types.UID]map[types.UID]bool{}
	link := func(a, b types.UID) {
		if linked[a] == nil {
			linked[a] = map[types.UID]bool{}
		}
		linked[a][b] = true
	}
	for _, l := range c.trace {
		if seen, ok := l.ev.(graph.Observed); ok {
			for _, r := range seen.Object.Owners {
				link(seen.Object.UID, r.UID)
				link(r.UID, seen.Object.UID)
			}
		}
	}
	out := map[types.UID]bool{}
	for todo := uids; len(todo) > 0; todo = todo[1:] {
		if uid := todo[0]; !out[uid] {
			out[uid] = true
			todo = slices.AppendSeq(todo, maps.Keys(linked[uid]))
		}
	}
	return out
}

// seen are all objects that the collector ever saw.
func (c *collector) seen() (uids []types.UID) {
	for _, l := range c.trace {
		if seen, ok := l.ev.(graph.Observed); ok {
			uids = append(uids, seen.Object.UID)
		}
	}
	return uids
}
