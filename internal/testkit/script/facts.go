package script

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// facts answers what policies ask.
func (r *Runner) facts(verb string, words []string) (string, error) {
	a, err := newArgs(words)
	if err != nil {
		return "", err
	}
	if verb == "owner" {
		return r.owner(a)
	}
	wanted := 1
	if verb == "depends" {
		wanted = 2
	}
	which, err := a.exactly(wanted)
	if err != nil {
		return "", err
	}
	switch verb {
	case "instances":
		kind, err := kindOf(which[0])
		if err != nil {
			return "", err
		}
		f, ok := r.Graph.Instances(kind)
		return counted([]graph.Counted{f}, ok), nil
	case "filled":
		f, ok := r.Graph.Filled(which[0])
		return counted(f, ok), nil
	default:
		return fmt.Sprintln(r.Graph.Depends(types.UID(which[0]), types.UID(which[1]), 1000)), nil
	}
}

func counted(all []graph.Counted, ok bool) string {
	switch {
	case !ok:
		return "not known\n"
	case len(all) == 0:
		return "nothing\n"
	}
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%s: %d %s\n", f.Kind, f.Count, words(f.Names))
	}
	return b.String()
}

func (r *Runner) owner(a args) (string, error) {
	if len(a.words) == 1 {
		a.words = append(a.words, "")
	}
	if len(a.words) != 2 {
		return "", fmt.Errorf("an owner and a namespace wanted, got %q", a.words)
	}
	ref, err := ownerOf(a.words[0])
	if err != nil {
		return "", err
	}
	namespace, err := unescape(a.words[1])
	if err != nil {
		return "", err
	}
	seen := r.Graph.Owner(ref, namespace)
	switch seen.Answer {
	case graph.Present:
		place := escape(seen.Name)
		if seen.Namespace != "" {
			place = escape(seen.Namespace) + "/" + place
		}
		return fmt.Sprintf("present: %s %s\n", seen.Kind, place), nil
	case graph.Absent:
		return "absent\n", nil
	}
	return "not known\n", nil
}
