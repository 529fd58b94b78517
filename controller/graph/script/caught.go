package script

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// caught answers what of some kinds goes with an object, with all of a namespace, or with all of a kind.
func (r *Runner) caught(words []string) (string, error) {
	a, err := newArgs(words, "kept", "wanted", "namespace", "instances", "most")
	if err != nil {
		return "", err
	}
	s := graph.Search{Namespace: a.named["namespace"], Most: 10}
	if len(a.words) > 0 {
		s.UID = types.UID(a.words[0])
	}
	if text := a.named["most"]; text != "" {
		if s.Most, err = strconv.Atoi(text); err != nil {
			return "", err
		}
	}
	if text := a.named["instances"]; text != "" {
		if s.Instances, err = kindOf(text); err != nil {
			return "", err
		}
	}
	if s.Kept, err = oneOf(a.named["kept"]); err != nil {
		return "", err
	}
	if s.Wanted, err = oneOf(a.named["wanted"]); err != nil {
		return "", err
	}
	found, count, along, complete := r.Graph.Catch(s)
	var b strings.Builder
	for _, c := range found {
		fmt.Fprintf(&b, "%s uid=%s, a %s in %s\n", c.Ref, c.UID, c.KindName, c.Version)
	}
	if count > len(found) {
		fmt.Fprintf(&b, "%d in all\n", count)
	}
	if along {
		b.WriteString("some of it goes with a namespace or a definition\n")
	}
	if !complete {
		b.WriteString("perhaps others\n")
	}
	if b.Len() == 0 {
		return "nothing\n", nil
	}
	return b.String(), nil
}

// oneOf tells of a kind whether it is one of those listed.
func oneOf(text string) (func(schema.GroupResource) bool, error) {
	kinds := map[schema.GroupResource]bool{}
	for _, w := range list(text) {
		kind, err := kindOf(w)
		if err != nil {
			return nil, err
		}
		kinds[kind] = true
	}
	return func(kind schema.GroupResource) bool { return kinds[kind] }, nil
}
