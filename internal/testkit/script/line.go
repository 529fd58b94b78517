package script

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/weir-dev/weir/controller/graph"
)

// Line writes an event as the line that repeats it. The label joins a lookup and its answer, or a
// request and its acceptance; who is the object on whose behalf they were made.
func Line(ev graph.Event, who, label string) string {
	switch ev := ev.(type) {
	case graph.Serving:
		return servingLine(ev)
	case graph.Observed:
		return "see " + kindWord(ev.Object.Kind) + " " + objectWords(ev.Object)
	case graph.Gone:
		return "gone " + kindWord(ev.Kind) + " " + escape(string(ev.UID))
	case graph.Unlisted:
		return "unlisted " + kindWord(ev.Kind) + " " + escape(string(ev.UID))
	case graph.ListBegins:
		return "list " + kindWord(ev.Kind) + " begin"
	case graph.ListEnds:
		return "list " + kindWord(ev.Kind) + " end"
	case graph.ListFailed:
		w := "list " + kindWord(ev.Kind) + " fail"
		if ev.Forbidden {
			w += " forbidden"
		}
		return w + " reason=" + escapePath(ev.Reason)
	case graph.ListSlow:
		return "list " + kindWord(ev.Kind) + " slow reason=" + escapePath(ev.Reason)
	case graph.FellBehind:
		return "behind " + kindWord(ev.Kind) + " reason=" + escapePath(ev.Reason)
	case graph.NotFound:
		return fmt.Sprintf("notfound %s %s history=%d", kindWord(ev.Kind), escape(string(ev.UID)), ev.History)
	case graph.Rewound:
		return "rewind reason=" + escapePath(ev.Reason)
	case graph.KindRewound:
		return "rewind-kind " + kindWord(ev.Kind)
	case graph.Stopped:
		return "stop " + kindWord(ev.Kind)
	case graph.LookupStarted:
		return "look " + escape(who) + " as=" + escape(label)
	case graph.LookupAnswered:
		return "answer " + escape(label) + " " + ev.Answer.String() + " reason=" + escapePath(ev.Reason)
	case graph.Accepted:
		return "accept " + escape(label)
	case graph.Recheck:
		return "recheck"
	case graph.Collecting:
		return fmt.Sprintf("collecting %s %s %s %s", kindWord(ev.Kind), escape(string(ev.UID)), ev.Inference.Conclusion, kindWord(ev.Inference.Owners))
	case graph.Remembered:
		return fmt.Sprintf("remember %s %s %d", kindWord(ev.Kind), escape(string(ev.UID)), ev.References)
	case graph.Ruled:
		return "rule " + kindWord(ev.Kind) + " " + escape(string(ev.UID)) + " " + cmp.Or(strings.ToLower(string(ev.Propagation)), "none") + " by=" + escapePath(ev.Finalizer)
	case graph.Holds:
		return "holds " + escapePath(ev.Finalizer)
	case graph.Draining:
		if !ev.On {
			return "drain " + escape(ev.Namespace) + " off"
		}
		return "drain " + escape(ev.Namespace)
	}
	panic(fmt.Sprintf("script: unknown event %T", ev))
}

func servingLine(ev graph.Serving) string {
	words := []string{"serve"}
	for _, r := range ev.Resources {
		words = append(words, resourceWord(r))
	}
	if len(ev.Resources) == 0 {
		words = append(words, "none")
	}
	return strings.Join(words, " ")
}
