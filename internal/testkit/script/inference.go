package script

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

func collecting(words []string) ([]graph.Event, error) {
	a, err := newArgs(words)
	if err != nil {
		return nil, err
	}
	said, err := a.exactly(4)
	if err != nil {
		return nil, err
	}
	kind, err := kindOf(said[0])
	if err != nil {
		return nil, err
	}
	owners, err := kindOf(said[3])
	if err != nil {
		return nil, err
	}
	c := graph.Asked
	for c.String() != said[2] {
		if c++; c > graph.ReferenceEdited {
			return nil, fmt.Errorf("%q is no conclusion", said[2])
		}
	}
	return []graph.Event{graph.Collecting{Kind: kind, UID: types.UID(said[1]), Inference: graph.Inference{Conclusion: c, Owners: owners}}}, nil
}

// remember reads "KIND UID N".
func remember(words []string) ([]graph.Event, error) {
	if len(words) != 3 {
		return nil, fmt.Errorf("a kind, a uid and a number wanted, got %q", words)
	}
	kind, err := kindOf(words[0])
	if err != nil {
		return nil, err
	}
	uid, err := unescape(words[1])
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(words[2])
	return []graph.Event{graph.Remembered{Kind: kind, UID: types.UID(uid), References: n}}, err
}

// ended reads "[N]".
func (r *Runner) ended(words []string) (string, error) {
	enough := 0
	if len(words) == 1 {
		var err error
		if enough, err = strconv.Atoi(words[0]); err != nil {
			return "", fmt.Errorf("a number wanted: %w", err)
		}
	}
	text := ""
	for _, o := range r.Graph.EndedOwners(enough, 1000) {
		text += fmt.Sprintf("%s %s: %d\n", kindWord(o.Kind), escape(string(o.UID)), o.References)
	}
	return cmp.Or(text, "nothing\n"), nil
}

// weigh reads "UID… [most=N]".
func (r *Runner) weigh(words []string) (string, error) {
	a, err := newArgs(words, "most")
	if err != nil {
		return "", err
	}
	most := 0
	if a.named["most"] != "" {
		if most, err = strconv.Atoi(a.named["most"]); err != nil {
			return "", fmt.Errorf("most: %w", err)
		}
	}
	var uids []types.UID
	for _, w := range a.words {
		uid, err := unescape(w)
		if err != nil {
			return "", err
		}
		uids = append(uids, types.UID(uid))
	}
	all, complete := r.Graph.Weigh(most, uids...)
	if !complete {
		return "at least\n" + counted(all, true), nil
	}
	return counted(all, true), nil
}

// inferred reads "KIND".
func (r *Runner) inferred(words []string) (string, error) {
	if len(words) != 1 {
		return "", fmt.Errorf("a kind wanted, got %q", words)
	}
	of, err := kindOf(words[0])
	if err != nil {
		return "", err
	}
	var lines []string
	open := 0
	for next := uint32(0); ; {
		all, n, cursor := r.Graph.InferredFrom(of, next)
		open += n
		for _, o := range all {
			lines = append(lines, fmt.Sprintf("%s: %s; %s\n", escape(string(o.UID)), o.Inference, o.Why))
		}
		if cursor == 0 {
			break
		}
		next = cursor
	}
	slices.Sort(lines)
	if open > 0 {
		lines = append(lines, fmt.Sprintf("%d owners are not known\n", open))
	}
	if len(lines) == 0 {
		return "nothing\n", nil
	}
	return strings.Join(lines, ""), nil
}
