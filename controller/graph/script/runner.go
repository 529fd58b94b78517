package script

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Runner plays lines on a graph. The zero value is not ready: use New.
type Runner struct {
	Graph *graph.Graph
	// Each, if set, takes the place of Graph.Apply: it applies the event, and can look before and after.
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

// Run plays one line, with the lines below it where the verb takes any, and returns what it answers.
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
		return r.Graph.Dump(), nil
	case "stats":
		return r.stats(), nil
	case "check":
		if err := r.Graph.Check(); err != nil {
			return "", err
		}
		return "ok\n", nil
	case "send":
		return r.send(words)
	}
	events, err := r.events(verb, words, below)
	if err != nil {
		return "", err
	}
	return r.apply(events...), nil
}

// events translates a line that tells of something that happened.
func (r *Runner) events(verb string, words, below []string) ([]graph.Event, error) {
	switch verb {
	case "serve":
		resources, err := served(words)
		return []graph.Event{graph.Serving{Resources: resources}}, err
	case "see":
		o, err := r.object(words)
		return []graph.Event{graph.Observed{Object: o}}, err
	case "list":
		return r.list(words, below)
	case "sync":
		return r.sync(words)
	case "gone":
		if len(words) != 2 {
			return nil, fmt.Errorf("a kind and a uid wanted, got %q", words)
		}
		uid, err := unescape(words[1])
		if err != nil {
			return nil, err
		}
		gr, err := kindOf(words[0])
		return []graph.Event{graph.Gone{Kind: gr, UID: types.UID(uid)}}, err
	case "stop":
		if len(words) != 1 {
			return nil, fmt.Errorf("one kind wanted, got %q", words)
		}
		gr, err := kindOf(words[0])
		return []graph.Event{graph.Stopped{Kind: gr}}, err
	case "look":
		return r.look(words)
	case "answer":
		return r.answer(words)
	case "accept":
		a, err := newArgs(words)
		if err != nil {
			return nil, err
		}
		label, err := a.exactly(1)
		if err != nil {
			return nil, err
		}
		action, ok := r.sent[label[0]]
		if !ok {
			return nil, fmt.Errorf("nothing was sent as %q", label[0])
		}
		return []graph.Event{graph.Accepted{Action: action}}, nil
	case "recheck":
		return r.recheck(words)
	}
	return nil, fmt.Errorf("unknown verb")
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
	return r.decisions(slices.Collect(maps.Keys(dirty)))
}

func (r *Runner) decisions(uids []types.UID) string {
	slices.Sort(uids)
	var b strings.Builder
	for _, uid := range uids {
		b.WriteString(escape(string(uid)) + ": " + Decision(r.Graph.Decide(uid)) + "\n")
	}
	return b.String()
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
	if a.Trouble != graph.NoTrouble {
		s += " [" + a.Trouble.String() + "]"
	}
	return s
}

func (r *Runner) object(words []string) (*graph.Object, error) {
	o, err := objectOf(words)
	if err != nil {
		return nil, err
	}
	if o.ResourceVersion == "" {
		o.ResourceVersion = strconv.FormatUint(r.version+1, 10)
	}
	if v, err := strconv.ParseUint(o.ResourceVersion, 10, 64); err == nil {
		r.version = max(r.version, v)
	}
	return o, nil
}

func (r *Runner) list(words, below []string) ([]graph.Event, error) {
	a, err := newArgs(words, "reason")
	if err != nil {
		return nil, err
	}
	begin, end, fail, forbidden := a.take("begin"), a.take("end"), a.take("fail"), a.take("forbidden")
	if len(a.words) != 1 {
		return nil, fmt.Errorf("one kind wanted, got %q", a.words)
	}
	gr, err := kindOf(a.words[0])
	if err != nil {
		return nil, err
	}
	if fail {
		reason, err := unescape(a.named["reason"])
		return []graph.Event{graph.ListFailed{Kind: gr, Forbidden: forbidden, Reason: reason}}, err
	}
	var events []graph.Event
	if !end {
		events = append(events, graph.ListBegins{Kind: gr})
	}
	for _, line := range below {
		o, err := r.object(append([]string{kindWord(gr)}, split(line)...))
		if err != nil {
			return nil, err
		}
		events = append(events, graph.Observed{Object: o})
	}
	if !begin {
		events = append(events, graph.ListEnds{Kind: gr})
	}
	return events, nil
}

func (r *Runner) sync(words []string) (events []graph.Event, err error) {
	for _, k := range r.Graph.Stats().Kinds {
		wanted := len(words) == 0
		for _, w := range words {
			gr, err := kindOf(w)
			if err != nil {
				return nil, err
			}
			wanted = wanted || gr == k.GroupResource()
		}
		if wanted && k.State == graph.Listing {
			events = append(events, graph.ListBegins{Kind: k.GroupResource()}, graph.ListEnds{Kind: k.GroupResource()})
		}
	}
	return events, nil
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

func (r *Runner) look(words []string) ([]graph.Event, error) {
	uid, label, err := labelled(words)
	if err != nil {
		return nil, err
	}
	a := r.Graph.Decide(uid)
	if a.Verb != graph.Look {
		return nil, fmt.Errorf("%s is not to be looked at: %s", uid, a)
	}
	r.looks[label] = a.Claim
	return []graph.Event{graph.Looking{Claim: a.Claim}}, nil
}

func (r *Runner) answer(words []string) ([]graph.Event, error) {
	a, err := newArgs(words, "reason")
	if err != nil {
		return nil, err
	}
	said, err := a.exactly(2)
	if err != nil {
		return nil, err
	}
	reason, err := unescape(a.named["reason"])
	if err != nil {
		return nil, err
	}
	claim, ok := r.looks[said[0]]
	if !ok {
		return nil, fmt.Errorf("nothing is being looked up as %q", said[0])
	}
	for answer, word := range answers {
		if word == said[1] {
			return []graph.Event{graph.Looked{Claim: claim, Answer: answer, Reason: reason}}, nil
		}
	}
	return nil, fmt.Errorf("%q is no answer", said[1])
}

func (r *Runner) send(words []string) (string, error) {
	uid, label, err := labelled(words)
	if err != nil {
		return "", err
	}
	a := r.Graph.Decide(uid)
	if !a.Request() || a.Verb == graph.Look {
		return "", fmt.Errorf("%s is not to be written: %s", uid, a)
	}
	r.sent[label] = a
	return r.decisions([]types.UID{uid}), nil
}

func (r *Runner) recheck(words []string) ([]graph.Event, error) {
	n := 1
	if len(words) > 0 {
		var err error
		if n, err = strconv.Atoi(words[0]); err != nil || n < 1 || n > 1000 {
			return nil, fmt.Errorf("%q is no number of rounds", words[0])
		}
	}
	var events []graph.Event
	for range n {
		r.round++
		events = append(events, graph.Recheck{Round: r.round})
	}
	return events, nil
}

func (r *Runner) decide(words []string) (string, error) {
	uids := r.Graph.UIDs()
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
	for _, k := range s.Kinds {
		fmt.Fprintf(&b, "%s: %s, served=%t, %d objects", k.GroupResource(), k.State, k.Served, k.Objects)
		if k.Reason != "" {
			b.WriteString(": " + k.Reason)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
