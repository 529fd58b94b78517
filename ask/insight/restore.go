package insight

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weir-dev/weir/archive/restore"
	"github.com/weir-dev/weir/controller/words"
)

// DrawRestore writes the plan of a restore as a tree: objects below their owners, or their
// namespace.
func DrawRestore(w io.Writer, p *restore.Plan, style Style) error {
	first, below := map[restore.Ref]*restore.Step{}, map[restore.Ref][]*restore.Step{}
	later := map[restore.Ref]string{}
	var roots []*restore.Step
	for _, s := range p.Steps {
		switch {
		case first[s.Ref] != nil:
			later[s.Ref] = patched(s)
			continue
		case s.Under != restore.Ref{}:
			below[s.Under] = append(below[s.Under], s)
		}
		first[s.Ref] = s
		roots = append(roots, s)
	}
	met := map[*restore.Step]bool{}
	fold := newFolding(style)
	var grow func(s *restore.Step) *branch
	grow = func(s *restore.Step) *branch {
		notes := slices.Concat([]string{s.Refused, s.Why}, s.Dropped, s.Notes, []string{later[s.Ref]})
		notes = slices.DeleteFunc(notes, func(note string) bool { return note == "" })
		b := &branch{symbol: restoreSymbol(s), objects: []Object{objectOfRef(s.Ref)},
			note: words.Printable(strings.Join(notes, "; "))}
		met[s] = true
		for _, d := range below[s.Ref] {
			if !met[d] {
				b.below = append(b.below, grow(d))
			}
		}
		fold.seal(b, s.Ref.Kind.String()+"|"+s.Ref.Namespace)
		return b
	}
	var branches []*branch
	for _, inCycles := range []bool{false, true} { // a cycle begins at any of its objects
		for _, s := range roots {
			if !met[s] && (inCycles || first[s.Under] == nil) {
				branches = append(branches, grow(s))
			}
		}
	}
	out := ""
	if len(branches) > 0 {
		out = textOf(linesOf(fold.alike(branches), style, mostLines), onlyNamespace(p), style) + "\n"
	}
	_, err := io.WriteString(w, out+RestoreSummary(p)+"\n")
	return err
}

func objectOfRef(r restore.Ref) Object {
	return Object{Kind: r.Kind.String(), Namespace: r.Namespace, Name: r.Name}
}

// onlyNamespace returns the namespace of all namespaced objects, or empty if there are several.
func onlyNamespace(p *restore.Plan) (namespace string) {
	for _, s := range p.Steps {
		if in := s.Ref.Namespace; namespace == "" {
			namespace = in
		} else if in != "" && in != namespace {
			return ""
		}
	}
	return namespace
}

// patched says what is changed about an object after it was created.
func patched(s *restore.Step) string {
	var owners []string
	for _, l := range s.Links {
		owners = append(owners, l.Owner.Name)
	}
	return "its reference to " + strings.Join(owners, ", ") + " is added at the end"
}

func restoreSymbol(s *restore.Step) string {
	switch {
	case s.Refused != "" || s.Outcome == restore.Taken || s.Outcome == restore.Blocked:
		return "✗"
	case s.Fresh || s.Outcome == restore.Ending:
		return "!"
	case s.Outcome == restore.Unknown:
		return "?"
	case !s.Outcome.Acts():
		return "="
	case s.Outcome != restore.Create || len(s.Dropped) > 0:
		return "~"
	}
	return "+"
}

// RestoreSummary says in a sentence what the plan of a restore does.
func RestoreSummary(p *restore.Plan) string {
	counts := map[restore.Outcome]int{}
	dropped, fresh, refused := 0, 0, 0
	met := map[restore.Ref]bool{}
	for _, s := range p.Steps {
		if met[s.Ref] {
			continue
		}
		met[s.Ref] = true
		counts[s.Outcome]++
		for n, is := range map[*int]bool{&dropped: len(s.Dropped) > 0, &fresh: s.Fresh, &refused: s.Refused != ""} {
			if is {
				*n++
			}
		}
	}
	var parts []string
	for _, c := range []struct {
		n         int
		one, many string
	}{
		{counts[restore.Create], "object is made again", "objects are made again"},
		{dropped, "of them without a reference to an owner", "of them without references to owners"},
		{fresh, "with a new, empty volume", "with new, empty volumes"},
		{counts[restore.Free], "volume is freed for its claim", "volumes are freed for their claims"},
		{counts[restore.Replace], "object of another is replaced", "objects of others are replaced"},
		{counts[restore.Patch], "is completed", "are completed"},
		{counts[restore.There], "is there", "are there"},
		{counts[restore.Left], "is left out on purpose", "are left out on purpose"},
		{counts[restore.Taken], "is not made: another has its name", "are not made: others have their names"},
		{counts[restore.Blocked], "cannot be made as things are", "cannot be made as things are"},
		{counts[restore.Ending], "waits until its namesake is deleted", "wait until their namesakes are deleted"},
		{counts[restore.Unknown], "is in doubt", "are in doubt"},
		{refused, "you may not make", "you may not make"},
	} {
		if c.n > 0 {
			parts = append(parts, words.Count(c.n, c.one, c.many))
		}
	}
	if len(parts) == 0 {
		parts = []string{"nothing to do"}
	}
	return fmt.Sprintf("Plan: %s.", strings.Join(parts, ", "))
}
