package script

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Runner plays lines on a graph. The zero value is not ready: use New.
type Runner struct {
	Graph *graph.Graph
	// Each, if set, takes the place of Graph.Apply: it applies the event, and can look before and
	// after.
	Each func(graph.Event) []types.UID

	version uint64 // the last resourceVersion
	round   uint64 // of the clock
	looks   map[string]graph.Claim
	sent    map[string]graph.Action
}

// New returns a runner with an empty graph.
func New() *Runner {
	return &Runner{Graph: graph.New(), looks: map[string]graph.Claim{}, sent: map[string]graph.Action{}}
}

// Run plays one line, with the lines below it where the verb takes any, and returns what it
// answers.
func (r *Runner) Run(line string, below ...string) (string, error) {
	words := split(line)
	if len(words) == 0 {
		return "", fmt.Errorf("empty line")
	}
	answer, err := r.run(words[0], words[1:], below)
	if err != nil {
		return "", fmt.Errorf("%s: %w", words[0], err)
	}
	return answer, nil
}

func (r *Runner) run(verb string, words, below []string) (string, error) {
	if len(below) > 0 && (verb != "list" || len(words) != 1) {
		return "", fmt.Errorf("takes no lines below")
	}
	switch verb {
	case "decide":
		return r.decide(words)
	case "dump":
		return Dump(r.Graph), nil
	case "stats":
		return r.stats(), nil
	case "check":
		if err := r.Graph.Check(); err != nil {
			return "", err
		}
		return "ok\n", nil
	case "inventory":
		return r.inventory(words)
	case "caught":
		return r.caught(words)
	case "going":
		return r.going(words)
	case "cascade":
		return r.cascade(words)
	case "instances", "filled", "owner", "depends":
		return r.facts(verb, words)
	case "weigh":
		return r.weigh(words)
	case "inferred":
		return r.inferred(words)
	case "ended":
		return r.ended(words)
	case "send":
		return r.send(words)
	}
	events, err := r.events(verb, words, below)
	if err != nil {
		return "", err
	}
	return r.apply(events...), nil
}

// apply feeds events to the graph and answers with what they made dirty.
func (r *Runner) apply(events ...graph.Event) string {
	each := r.Each
	if each == nil {
		each = r.Graph.Apply
	}
	dirty := map[types.UID]bool{}
	for _, ev := range events {
		for _, uid := range each(ev) {
			dirty[uid] = true
		}
	}
	answer := r.decisions(slices.Collect(maps.Keys(dirty)))
	for _, ns := range r.Graph.ChangedNamespaces() {
		answer += "namespace " + escape(ns) + ": changed\n"
	}
	return answer
}

func (r *Runner) decisions(uids []types.UID) string {
	slices.Sort(uids)
	var b strings.Builder
	for _, uid := range uids {
		b.WriteString(escape(string(uid)) + ": " + Decision(r.Graph.Decide(uid)) + "\n")
	}
	return b.String()
}

var unresolvable = map[graph.Unresolvable]string{
	graph.UnservedKind: "unserved-kind", graph.AmbiguousKind: "ambiguous-kind",
	graph.Misplaced:  "namespaced-owner-of-cluster-scoped-object",
	graph.Unreadable: "unreadable-owner", graph.TooManyOwners: "too-many-owners",
}

// Decision writes all of an action that a reader wants to know.
func Decision(a graph.Action) string {
	s := a.String()
	switch a.Verb {
	case graph.Release, graph.Unblock:
		s += "; owners=" + Owners(a.Owners)
	case graph.Unfinalize:
		s += "; finalizers=" + words(a.Finalizers)
	}
	if a.Inferred.Conclusion != graph.Asked {
		s += "; inferred: " + a.Inferred.String()
	}
	if a.Unresolvable != graph.Resolvable {
		s += " [" + unresolvable[a.Unresolvable] + "]"
	}
	return s
}

// labelled reads "UID [as=LABEL]".
func labelled(words []string) (uid types.UID, label string, err error) {
	a, err := newArgs(words, "as")
	if err != nil {
		return "", "", err
	}
	one, err := a.exactly(1)
	if err != nil {
		return "", "", err
	}
	label, err = unescape(a.named["as"])
	return types.UID(one[0]), cmp.Or(label, one[0]), err
}

func (r *Runner) send(words []string) (string, error) {
	uid, label, err := labelled(words)
	if err != nil {
		return "", err
	}
	a := r.Graph.Decide(uid)
	if !a.Request() || a.Verb == graph.Lookup {
		return "", fmt.Errorf("%s is not to be written: %s", uid, Decision(a))
	}
	r.sent[label] = a
	return r.decisions([]types.UID{uid}), nil
}

func (r *Runner) decide(words []string) (string, error) {
	uids := UIDs(r.Graph)
	if len(words) > 0 {
		uids = nil
	}
	for _, w := range words {
		uid, err := unescape(w)
		if err != nil {
			return "", err
		}
		uids = append(uids, types.UID(uid))
	}
	slices.Sort(uids)
	return r.decisions(slices.Compact(uids)), nil
}

func (r *Runner) inventory(words []string) (string, error) {
	a, err := newArgs(words)
	if err != nil {
		return "", err
	}
	ns, err := a.exactly(1)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	inv := r.Graph.Inventory(ns[0])
	for _, k := range inv.Kinds {
		fmt.Fprintf(&b, "%s: %d, %d of them terminating\n", k.Kind, k.Total, k.Terminating)
	}
	for _, f := range slices.Sorted(maps.Keys(inv.Finalizers)) {
		fmt.Fprintf(&b, "finalizer %s: %d\n", f, inv.Finalizers[f])
	}
	return b.String(), nil
}

func (r *Runner) stats() string {
	s := r.Graph.Stats()
	var b strings.Builder
	fmt.Fprintf(&b, "%d objects, %d ending\nclaims:", s.Objects, s.Ending)
	for _, v := range slices.Sorted(maps.Keys(s.Claims)) {
		if n := s.Claims[v]; n > 0 {
			fmt.Fprintf(&b, " %s=%d", v, n)
		}
	}
	b.WriteByte('\n')
	if s.Rewound != "" {
		b.WriteString("every kind is being listed again: " + s.Rewound + "\n")
	}
	for _, k := range s.Kinds {
		fmt.Fprintf(&b, "%s: %s, served=%t, %d objects", k.GroupResource(), k.State, k.Served, k.Objects)
		if k.Reason != "" {
			b.WriteString(": " + k.Reason)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
