package graph_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	shown "github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/internal/testkit/copied"
	"github.com/weir-dev/weir/internal/testkit/script"
)

// history plays lines on a graph and on the model at once, and verifies after each event that
//
//	the invariants of the graph hold,
//	the graph decides about every object as the model does,
//	every object that is still there and whose decision changed was said to be dirty,
//	what a new leader would begin with is what there is to do,
//	what policies are told about the graph is what the model says,
//	the inventory of each namespace is what the model counts, and its change was told if it is draining,
//	a kind of which no change was counted has the same objects, at the same resourceVersions.
type history struct {
	*script.Runner
	model  model
	stock  map[string]graph.Inventory // of each namespace, before
	before map[types.UID]graph.Action
	kinds  map[schema.GroupResource]contents
	events int
	broken string // what did not hold, first
}

func newHistory() *history {
	h := &history{Runner: script.New(), before: map[types.UID]graph.Action{}, stock: map[string]graph.Inventory{},
		kinds: map[schema.GroupResource]contents{}}
	h.Each = h.each
	return h
}

func (h *history) each(ev graph.Event) []types.UID {
	original, was := h.Graph, ""
	if cloned := h.events%40 == 20; cloned {
		was = script.Dump(original)
		h.Graph = copied.Of(original) // which takes its place: all that comes is held against the model
	}
	dirty := h.Graph.Apply(ev)
	h.model.apply(ev)
	h.events++
	if h.broken == "" {
		h.broken = h.whatIsBroken(dirty)
	}
	if h.broken == "" && h.Graph != original {
		if diff := cmp.Diff(was, script.Dump(original)); diff != "" {
			h.broken = "what happens to a clone shows in the original:\n" + diff
		} else if err := original.Check(); err != nil {
			h.broken = "a clone was changed, and an invariant of the original: " + err.Error()
		}
	}
	return dirty
}

func (h *history) whatIsBroken(dirty []types.UID) string {
	if err := h.Graph.Check(); err != nil {
		return "invariant: " + err.Error()
	}
	uids := script.UIDs(h.Graph)
	sorted := slices.Sorted(slices.Values(dirty))
	if len(slices.Compact(sorted)) != len(dirty) {
		return fmt.Sprintf("dirty more than once: %q", dirty)
	}
	for _, uid := range dirty {
		if !slices.Contains(uids, uid) {
			return fmt.Sprintf("dirty, and not in the graph: %q", uid)
		}
	}
	pending := h.pending()
	after := map[types.UID]graph.Action{}
	for _, uid := range uids {
		a := h.Graph.Decide(uid)
		if want, got := plain(h.model.decide(uid)), plain(a); !reflect.DeepEqual(want, got) {
			return fmt.Sprintf("%s is decided otherwise than by the model (-model +graph):\n%s", uid, cmp.Diff(want, got))
		}
		if (a.Verb == graph.Delete) != (a.Cause != graph.Claim{}) || a.Dependents < 0 ||
			!strings.Contains(a.Why, shown.Printable(a.Cause.Name)) {
			return fmt.Sprintf("%s: its cause is %v, with %d dependents", a, a.Cause, a.Dependents)
		}
		if a.Verb == graph.Delete {
			if want, got := h.model.awaiting(uid), awaitedBy(a); !slices.Equal(want, got) {
				return fmt.Sprintf("%s: it is awaited by %q, want %q", a, got, want)
			}
		}
		if b, was := h.before[uid]; was && !a.Same(b) && !slices.Contains(dirty, uid) {
			return fmt.Sprintf("%s is not dirty, and its decision changed\nfrom %s\nto   %s", uid, b, a)
		}
		if todo := a.Request() || a.Unresolvable != graph.Resolvable; todo != slices.Contains(pending, uid) &&
			h.model.nodes(uid) == 1 {
			return fmt.Sprintf("%s is pending: %t, and the decision is: %s", uid, !todo, a)
		}
		after[uid] = a
	}
	if n := len(h.model.objects); len(uids) != n {
		return fmt.Sprintf("%d objects in the graph, %d in the model", len(uids), n)
	}
	h.before = after
	if broken := h.whichFactIsWrong(uids); broken != "" {
		return broken
	}
	if broken := h.whichChangeIsNotCounted(); broken != "" {
		return broken
	}
	return h.whatIsMiscounted()
}

// contents are the objects of a kind as the model knows them, and how many changes the graph had
// counted by then.
type contents struct {
	changes uint64
	objects string
}

func (h *history) whichChangeIsNotCounted() string {
	for _, k := range h.model.kinds {
		var objects []string
		for _, o := range h.model.objects {
			if o.Kind == k.GroupResource() {
				objects = append(objects, fmt.Sprintf("%s@%s", o.UID, o.ResourceVersion))
			}
		}
		slices.Sort(objects)
		n, _ := h.Graph.Changes(k.GroupResource())
		was, now := h.kinds[k.GroupResource()], contents{n, strings.Join(objects, " ")}
		if was.changes == now.changes && was.objects != now.objects {
			return fmt.Sprintf("%s changed from %q to %q, and %d changes are counted as before",
				k.GroupResource(), was.objects, now.objects, n)
		}
		h.kinds[k.GroupResource()] = now
	}
	return ""
}

func (h *history) whatIsMiscounted() string {
	changed := h.Graph.ChangedNamespaces()
	for _, ns := range []string{"", "x", "y"} {
		want, got := h.model.inventory(ns), h.Graph.Inventory(ns)
		if !reflect.DeepEqual(want, got) {
			return fmt.Sprintf("inventory of %q (-model +graph):\n%s", ns, cmp.Diff(want, got))
		}
		if diff := h.contentDiffers(ns); diff != "" {
			return diff
		}
		told, due := slices.Contains(changed, ns), !reflect.DeepEqual(h.stock[ns], got)
		if h.stock[ns].Finalizers != nil && due && h.model.draining[ns] && !told {
			return fmt.Sprintf("the inventory of %q changed, and it was not told", ns)
		}
		if told && !h.model.draining[ns] {
			return fmt.Sprintf("a change of %q was told, and it is not draining", ns)
		}
		h.stock[ns] = got
	}
	return ""
}

// contentDiffers compares what a namespace holds, piece by piece, with the model.
func (h *history) contentDiffers(ns string) string {
	for _, k := range h.model.kinds {
		var want, got []types.UID
		for _, o := range h.model.objects {
			if o.Namespace == ns && ns != "" && o.Kind == k.GroupResource() {
				want = append(want, o.UID)
			}
		}
		for next := uint32(0); ; {
			views, cursor := h.Graph.Content(ns, k.GroupResource(), next, 2)
			for _, v := range views {
				got = append(got, v.UID)
			}
			if next = cursor; next == 0 {
				break
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			return fmt.Sprintf("%q holds of %s (-model +graph):\n%s", ns, k.GroupResource(), cmp.Diff(want, got))
		}
	}
	return ""
}

func (h *history) pending() (all []types.UID) {
	for next := uint32(0); ; {
		uids, cursor := h.Graph.Pending(next, 2)
		all = append(all, uids...)
		if next = cursor; next == 0 {
			return all
		}
	}
}

// awaitedBy are the uids of the owners that wait for what is deleted, each once.
func awaitedBy(a graph.Action) (uids []types.UID) {
	for _, c := range a.AwaitedBy {
		uids = append(uids, c.UID)
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}

// plain leaves of an action what is carried out: a decision to do nothing has no words to compare.
func plain(a graph.Action) graph.Action {
	if !a.Request() {
		return graph.Action{Verb: a.Verb, Unresolvable: a.Unresolvable}
	}
	a.Why, a.Unseen, a.Mismatched, a.Cause, a.AwaitedBy, a.Dependents = "", "", nil, graph.Claim{}, nil, 0
	a.Owners = append([]metav1.OwnerReference{}, a.Owners...) // none is none
	a.Finalizers = append([]string{}, a.Finalizers...)
	return a
}

// play runs lines until something is broken, and returns what. A line that does not apply is passed
// over, so that lines can be left out before it.
func play(lines []string) string {
	h := newHistory()
	for _, line := range lines {
		h.Run(line) //nolint:errcheck // see above
		if h.broken != "" {
			return h.broken
		}
	}
	return ""
}

// shrink leaves out lines for as long as something is still broken.
func shrink(lines []string) []string {
	for size := len(lines) / 2; size > 0; {
		shorter := false
		for i := 0; i+size <= len(lines); {
			less := slices.Delete(slices.Clone(lines), i, i+size)
			if play(less) != "" {
				lines, shorter = less, true
			} else {
				i += size
			}
		}
		if !shorter || size > len(lines) {
			size /= 2
		}
	}
	return lines
}

// asScript writes lines as testdata has them, with what the graph answers today.
func asScript(lines []string) string {
	var b strings.Builder
	r := script.New()
	for _, line := range lines {
		answer, err := r.Run(line)
		if err != nil {
			answer = "error: " + err.Error() + "\n"
		}
		fmt.Fprintf(&b, "%s\n----\n%s\n", line, answer)
	}
	return b.String()
}

// report says what broke a history, and how to get it again.
func report(broken string, lines []string) string {
	short := shrink(lines)
	if now := play(short); now != "" {
		broken = now
	}
	return fmt.Sprintf(
		"%s\n\n%d of %d lines are enough. To be committed as testdata/….txt, and run with -rewrite when fixed:\n\n%s",
		broken, len(short), len(lines), asScript(short))
}
