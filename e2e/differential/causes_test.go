package differential

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// read is a state as it is written: NAME owners=(…) finalizers=(…) terminating, a line each. All
// are in one namespace.
func read(t *testing.T, text string) State {
	t.Helper()
	s := State{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" {
			continue
		}
		var o Object
		for rest != "" {
			var word string
			if key, after, found := strings.Cut(rest, "=("); found && !strings.Contains(key, " ") {
				list, after, _ := strings.Cut(after, ")")
				for _, item := range strings.Split(list, ", ") {
					switch {
					case item == "":
					case key == "owners":
						o.Owners = append(o.Owners, reference(item))
					default:
						o.Finalizers = append(o.Finalizers, item)
					}
				}
				rest = strings.TrimSpace(after)
				continue
			}
			word, rest, _ = strings.Cut(rest, " ")
			o.Terminating = o.Terminating || word == "terminating"
		}
		s[name] = o.sorted()
	}
	return s
}

// reference is the inverse of String.
func reference(text string) Reference {
	var r Reference
	for _, m := range []Mark{Blocking, Free} {
		if rest, ok := strings.CutSuffix(text, string(m)); ok {
			text, r.Block = rest, m
		}
	}
	for _, f := range []Flaw{Misnamed, Mistyped, OtherVersion, Unserved} {
		if rest, ok := strings.CutSuffix(text, string(f)); ok {
			text, r.Flaw = rest, f
		}
	}
	r.Owner = text
	return r
}

func TestCompareNamesWhatDiffersAndNothingElse(t *testing.T) {
	const base = `
		cm1
		cm2 owners=(cm1!block, cm3~name) finalizers=(hold)
		cm4 terminating finalizers=(hold)
	`
	for name, test := range map[string]struct{ other, want string }{
		"the same":               {base, ""},
		"another order":          {"cm4 finalizers=(hold) terminating\ncm2 finalizers=(hold) owners=(cm3~name, cm1!block)\ncm1", ""},
		"one is gone":            {strings.Replace(base, "cm1\n", "", 1), "cm1"},
		"one is more":            {base + "cm5", "cm5"},
		"not terminating":        {strings.Replace(base, "terminating", "", 1), "cm4"},
		"a finalizer less":       {strings.Replace(base, "hold", "", 1), "cm2"},
		"another mark":           {strings.Replace(base, "!block", "!free", 1), "cm2"},
		"no mark":                {strings.Replace(base, "!block", "", 1), "cm2"},
		"another flaw":           {strings.Replace(base, "~name", "~kind", 1), "cm2"},
		"another owner":          {strings.Replace(base, "cm3", "cm6", 1), "cm2"},
		"a reference twice":      {strings.Replace(base, "cm3~name", "cm3~name, cm3~name", 1), "cm2"},
		"two differ, and are so": {"cm2 owners=(cm1!block, cm3~name) finalizers=(hold)", "cm1 cm4"},
	} {
		for side, differ := range map[string][]Difference{
			"weir":      Compare(read(t, base), read(t, test.other)),
			"reference": Compare(read(t, test.other), read(t, base)),
		} {
			var have []string
			for _, d := range differ {
				have = append(have, d.Name)
			}
			if diff := cmp.Diff(test.want, strings.Join(have, " ")); diff != "" {
				t.Errorf("%s, in %s (-want +have):\n%s", name, side, diff)
			}
		}
	}
}

// TestDifferencesHaveTheirCausesAndNoOthers: each cause is shown where it applies, and beside it
// what is nearly the same and has none. A case of testdata/causes.txt is a name; the state before,
// what is done, and the states after it; and why they differ, by object, or nothing where that is
// not explained.
func TestDifferencesHaveTheirCausesAndNoOthers(t *testing.T) {
	text, err := os.ReadFile("testdata/causes.txt")
	if err != nil {
		t.Fatal(err)
	}
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		name, rest, _ := strings.Cut(strings.TrimSpace(paragraph), "\n")
		t.Run(strings.TrimPrefix(name, "# "), func(t *testing.T) {
			parts, key := map[string]string{}, ""
			for line := range strings.SplitSeq(rest, "\n") {
				if !strings.HasPrefix(line, " ") {
					key, line, _ = strings.Cut(line, ":")
				}
				parts[key] += strings.TrimSpace(line) + "\n"
			}
			verb, object, _ := strings.Cut(strings.TrimSpace(parts["do"]), " ")
			done := Operation{Verb: Verb(verb)}
			for done.Object, done.Owner, _ = strings.Cut(object, " "); strings.HasPrefix(done.Owner, "owners="); done.Owner = "" {
				done.Owners = read(t, object)[done.Object].Owners
			}
			c := Case{
				Operation: done, Before: read(t, parts["before"]), BeforeReference: read(t, parts["before"]),
				Reference: read(t, parts["reference"]), Weir: read(t, parts["weir"]), Orphaned: map[string]bool{strings.TrimSpace(parts["orphaned"]): true},
			}
			differ := Compare(c.Reference, c.Weir)
			if len(differ) == 0 {
				t.Fatal("nothing differs")
			}
			var have []string
			if causes, ok := c.explain(differ); ok {
				for i, d := range differ {
					have = append(have, fmt.Sprintf("%s: %s", d.Name, causes[i]))
				}
			}
			if diff := cmp.Diff(strings.TrimSpace(parts["why"]), strings.Join(have, "; ")); diff != "" {
				t.Errorf("causes (-want +have):\n%s", diff)
			}
		})
	}
}

func TestEveryCauseIsNamedInTheDesign(t *testing.T) {
	text, err := os.ReadFile("../../DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	design := strings.Join(strings.Fields(string(text)), " ")
	for _, cause := range Causes {
		if !strings.Contains(design, cause.Name) {
			t.Errorf("DESIGN.md does not say: %s", cause.Name)
		}
	}
}
