package script

import (
	"cmp"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

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
	case "gone", "unlisted":
		if len(words) != 2 {
			return nil, fmt.Errorf("a kind and a uid wanted, got %q", words)
		}
		uid, err := unescape(words[1])
		if err != nil {
			return nil, err
		}
		gr, err := kindOf(words[0])
		if verb == "unlisted" {
			return []graph.Event{graph.Unlisted{Kind: gr, UID: types.UID(uid)}}, err
		}
		return []graph.Event{graph.Gone{Kind: gr, UID: types.UID(uid)}}, err
	case "stop", "behind", "notfound", "rewind", "rewind-kind":
		return r.outage(verb, words)
	case "look":
		return r.look(words)
	case "answer":
		return r.answer(words)
	case "accept":
		return r.accept(words)
	case "recheck":
		return r.recheck(words)
	case "collecting":
		return collecting(words)
	case "remember":
		return remember(words)
	case "protect":
		return r.protect(words)
	case "rule":
		return rule(words)
	case "holds":
		return holds(words)
	case "drain":
		return drain(words)
	}
	return nil, fmt.Errorf("unknown verb")
}

func drain(words []string) ([]graph.Event, error) {
	a, err := newArgs(words)
	if err != nil {
		return nil, err
	}
	on := !a.take("off")
	ns, err := a.exactly(1)
	if err != nil {
		return nil, err
	}
	return []graph.Event{graph.Draining{Namespace: ns[0], On: on}}, nil
}

func (r *Runner) accept(words []string) ([]graph.Event, error) {
	action, err := r.sentAs(words)
	return []graph.Event{graph.Accepted{Action: action}}, err
}

func (r *Runner) protect(words []string) ([]graph.Event, error) {
	action, err := r.sentAs(words)
	return []graph.Event{graph.Protected{Object: action.Object, Why: "a policy protects it: the policy's words"}}, err
}

// sentAs is the action that was sent under a label.
func (r *Runner) sentAs(words []string) (graph.Action, error) {
	a, err := newArgs(words)
	if err != nil {
		return graph.Action{}, err
	}
	label, err := a.exactly(1)
	if err != nil {
		return graph.Action{}, err
	}
	action, ok := r.sent[label[0]]
	if !ok {
		return graph.Action{}, fmt.Errorf("nothing was sent as %q", label[0])
	}
	return action, nil
}

// outage translates what happens to watches and to the server behind them.
func (r *Runner) outage(verb string, words []string) ([]graph.Event, error) {
	a, err := newArgs(words, "reason", "history")
	if err != nil {
		return nil, err
	}
	reason, err := unescape(a.named["reason"])
	if err != nil {
		return nil, err
	}
	if verb == "rewind" {
		_, err := a.exactly(0)
		return []graph.Event{graph.Rewound{Reason: reason}}, err
	}
	wanted := 1
	if verb == "notfound" {
		wanted = 2
	}
	said, err := a.exactly(wanted)
	if err != nil {
		return nil, err
	}
	gr, err := kindOf(said[0])
	if err != nil {
		return nil, err
	}
	switch verb {
	case "rewind-kind":
		return []graph.Event{graph.KindRewound{Kind: gr}}, nil
	case "behind":
		return []graph.Event{graph.FellBehind{Kind: gr, Reason: cmp.Or(reason, "broken")}}, nil
	case "notfound":
		history := uint64(r.Graph.History())
		if h, ok := a.named["history"]; ok {
			if history, err = strconv.ParseUint(h, 10, 32); err != nil {
				return nil, fmt.Errorf("history: %w", err)
			}
		}
		return []graph.Event{graph.NotFound{Kind: gr, UID: types.UID(said[1]), History: uint32(history)}}, nil
	}
	return []graph.Event{graph.Stopped{Kind: gr}}, nil
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
	begin, end, fail, forbidden, slow := a.take("begin"), a.take("end"), a.take("fail"), a.take("forbidden"), a.take("slow")
	if len(a.words) != 1 {
		return nil, fmt.Errorf("one kind wanted, got %q", a.words)
	}
	gr, err := kindOf(a.words[0])
	if err != nil {
		return nil, err
	}
	reason, err := unescape(a.named["reason"])
	switch {
	case err != nil:
		return nil, err
	case fail:
		return []graph.Event{graph.ListFailed{Kind: gr, Forbidden: forbidden, Reason: reason}}, nil
	case slow:
		return []graph.Event{graph.ListSlow{Kind: gr, Reason: reason}}, nil
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
		if wanted && (k.State == graph.Listing || k.State == graph.Slow) {
			events = append(events, graph.ListBegins{Kind: k.GroupResource()}, graph.ListEnds{Kind: k.GroupResource()})
		}
	}
	return events, nil
}

func (r *Runner) look(words []string) ([]graph.Event, error) {
	uid, label, err := labelled(words)
	if err != nil {
		return nil, err
	}
	a := r.Graph.Decide(uid)
	if a.Verb != graph.Lookup {
		return nil, fmt.Errorf("%s is not to be looked at: %s", uid, a)
	}
	r.looks[label] = a.Claim
	return []graph.Event{graph.LookupStarted{Claim: a.Claim}}, nil
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
	for answer := range graph.Denied + 1 {
		if answer.String() == said[1] {
			return []graph.Event{graph.LookupAnswered{Claim: claim, Answer: answer, Reason: reason}}, nil
		}
	}
	return nil, fmt.Errorf("%q is no answer", said[1])
}

// propagations are how a ruling names them.
var propagations = map[string]metav1.DeletionPropagation{
	"none": "", "background": metav1.DeletePropagationBackground,
	"foreground": metav1.DeletePropagationForeground, "orphan": metav1.DeletePropagationOrphan,
}

// held is the finalizer that a ruling is about if none is named.
const held = "example.com/held"

func rule(words []string) ([]graph.Event, error) {
	a, err := newArgs(words, "by")
	if err != nil {
		return nil, err
	}
	said, err := a.exactly(3)
	if err != nil {
		return nil, err
	}
	gr, err := kindOf(said[0])
	if err != nil {
		return nil, err
	}
	by, err := unescape(a.named["by"])
	if err != nil {
		return nil, err
	}
	p, ok := propagations[said[2]]
	if !ok {
		return nil, fmt.Errorf("%q is no propagation", said[2])
	}
	return []graph.Event{graph.Ruled{Kind: gr, UID: types.UID(said[1]), Finalizer: cmp.Or(by, held), Propagation: p}}, nil
}

func holds(words []string) ([]graph.Event, error) {
	a, err := newArgs(words)
	if err != nil {
		return nil, err
	}
	said, err := a.exactly(1)
	if err != nil {
		return nil, err
	}
	finalizer, err := unescape(said[0])
	return []graph.Event{graph.Holds{Finalizer: finalizer}}, err
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
