package script

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// caught answers what of some kinds goes with an object.
func (r *Runner) caught(words []string) (string, error) {
	a, err := newArgs(words, "kept", "wanted", "most")
	if err != nil {
		return "", err
	}
	wanted, err := oneOf(a.named["wanted"])
	if err != nil {
		return "", err
	}
	which, err := a.exactly(1)
	if err != nil {
		return "", err
	}
	kept, err := oneOf(a.named["kept"])
	if err != nil {
		return "", err
	}
	most, err := strconv.Atoi(cmp.Or(a.named["most"], "1000"))
	if err != nil {
		return "", fmt.Errorf("most: %w", err)
	}
	found, complete := r.Graph.Catch(types.UID(which[0]), kept, wanted, most)
	var b strings.Builder
	for _, c := range found {
		k := r.Graph.Kind(c.Kind)
		fmt.Fprintf(&b, "%s uid=%s, a %s in %s\n", c, c.UID, k.Kind, k.Version)
	}
	return orNothing(&b, complete), nil
}

// searchOf reads what goes: an object, all of a namespace, or all of a kind.
func searchOf(a args) (s graph.Search, err error) {
	s.Namespace = a.named["namespace"]
	if len(a.words) > 0 {
		s.UID = types.UID(a.words[0])
	}
	if text := a.named["instances"]; text != "" {
		if s.Instances, err = kindOf(text); err != nil {
			return s, err
		}
	}
	s.Kept, err = oneOf(a.named["kept"])
	return s, err
}

// going answers what goes, by its uids.
func (r *Runner) going(words []string) (string, error) {
	a, err := newArgs(words, "kept", "namespace", "instances")
	if err != nil {
		return "", err
	}
	s, err := searchOf(a)
	if err != nil {
		return "", err
	}
	uids, complete := r.Graph.Going(s, 0)
	slices.Sort(uids)
	var b strings.Builder
	for _, uid := range uids {
		fmt.Fprintln(&b, uid)
	}
	return orNothing(&b, complete), nil
}

// cascade answers what goes, too, by its kinds.
func (r *Runner) cascade(words []string) (string, error) {
	a, err := newArgs(words, "kept", "namespace", "instances", "most")
	if err != nil {
		return "", err
	}
	s, err := searchOf(a)
	if err != nil {
		return "", err
	}
	most, err := strconv.Atoi(cmp.Or(a.named["most"], "0"))
	if err != nil {
		return "", fmt.Errorf("most: %w", err)
	}
	f, ok, cut := r.Graph.Cascade(s, most)
	if cut {
		return "at least\n" + counted(f, true), nil
	}
	return counted(f, ok), nil
}

func orNothing(b *strings.Builder, complete bool) string {
	switch {
	case !complete:
		b.WriteString("perhaps others\n")
	case b.Len() == 0:
		return "nothing\n"
	}
	return b.String()
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
