package differential

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// read is a state as it is written: NAME owners=(…) finalizers=(…) terminating, a line each. All are in one
// namespace.
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

func references(words ...string) (refs []Reference) {
	for _, w := range words {
		refs = append(refs, reference(w))
	}
	return refs
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

// Each cause is shown where it applies, and beside it what is nearly the same and has none.
func TestDifferencesHaveTheirCausesAndNoOthers(t *testing.T) {
	for name, test := range map[string]struct {
		before          string
		operation       Operation
		reference, weir string
		orphaned        string
		want            string // by object; empty: unexplained
	}{
		"an object is lost": {
			before: "cm1\ncm2 owners=(cm1)", operation: Operation{Verb: Touch, Object: "cm1"},
			reference: "cm1\ncm2 owners=(cm1)", weir: "cm1",
		},
		"an object is lost with its owner's other dependents": {
			before: "cm1\ncm2 owners=(cm1)\ncm3 owners=(cm1)", operation: Operation{Verb: Touch, Object: "cm1"},
			reference: "cm1\ncm2 owners=(cm1)\ncm3 owners=(cm1)", weir: "cm1",
		},
		"an object is leaked": {
			before: "cm1\ncm2 owners=(cm1)", operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "", weir: "cm2 owners=(cm1)",
		},
		"a finalizer is left": {
			before: "cm1", operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "", weir: "cm1 terminating finalizers=(foregroundDeletion)",
		},
		"a dead reference is left beside a living owner": {
			before: "cm1", operation: Operation{Verb: Create, Object: "cm2", Owners: references("cm1", "cm9")},
			reference: "cm1\ncm2 owners=(cm1)", weir: "cm1\ncm2 owners=(cm1, cm9)",
		},
		"a living reference is taken off": {
			before: "cm1\ncm2", operation: Operation{Verb: Create, Object: "cm3", Owners: references("cm1", "cm2")},
			reference: "cm1\ncm2\ncm3 owners=(cm1, cm2)", weir: "cm1\ncm2\ncm3 owners=(cm1)",
		},
		"two references with one uid": {
			before: "cm1", operation: Operation{Verb: Create, Object: "cm2", Owners: references("cm1!block", "cm1~name")},
			reference: "cm1\ncm2", weir: "cm1\ncm2 owners=(cm1!block)",
			want: "cm2: references go one by one, not by uid",
		},
		"two references with one uid, and one with another": {
			before: "cm1\ncm3", operation: Operation{Verb: Create, Object: "cm2", Owners: references("cm1!block", "cm1~name", "cm3")},
			reference: "cm1\ncm2\ncm3", weir: "cm1\ncm2 owners=(cm1!block, cm3)\ncm3",
		},
		"an absent owner beside one that cannot be resolved": {
			before: "cm1", operation: Operation{Verb: Create, Object: "cm2", Owners: references("cm1", "cm9", "cm1~unserved")},
			reference: "cm1\ncm2 owners=(cm1, cm9, cm1~unserved)", weir: "cm1\ncm2 owners=(cm1, cm1~unserved)",
			want: "cm2: an unresolvable reference keeps no dead one",
		},
		"a living owner beside one that cannot be resolved": {
			before: "cm1\ncm3", operation: Operation{Verb: Create, Object: "cm2", Owners: references("cm1", "cm3", "cm1~unserved")},
			reference: "cm1\ncm2 owners=(cm1, cm3, cm1~unserved)\ncm3", weir: "cm1\ncm2 owners=(cm1, cm1~unserved)\ncm3",
		},
		"an object whose reference cannot be resolved is deleted": {
			before: "", operation: Operation{Verb: Create, Object: "cm2", Owners: references("cm9", "cm1~unserved")},
			reference: "cm2 owners=(cm9, cm1~unserved)", weir: "",
		},
		"the last reference that cannot be resolved is taken off": {
			before: "role1 owners=(cm1, axle1)", operation: Operation{Verb: Disown, Object: "role1", Owner: "cm1"},
			reference: "role1 owners=(axle1)", weir: "",
			want: "role1: references are judged whenever they change",
		},
		"a reference is taken off, and a living one is left": {
			before: "role1 owners=(cm1, axle1)\naxle1", operation: Operation{Verb: Disown, Object: "role1", Owner: "cm1"},
			reference: "role1 owners=(axle1)\naxle1", weir: "axle1",
		},
		"a reference to a new uid is dead": {
			before: "cm1\ncm2 owners=(cm1)", operation: Operation{Verb: Own, Object: "cm2", Owners: references("cm9")},
			reference: "cm1\ncm2 owners=(cm9)", weir: "cm1",
		},
		"a dependent of an owner that waits": {
			before:    "cm1 terminating finalizers=(foregroundDeletion)\ncm3",
			operation: Operation{Verb: Create, Object: "cm2", Owners: references("cm1!block", "cm3")},
			reference: "cm1 terminating finalizers=(foregroundDeletion)\ncm2 owners=(cm1!block, cm3)\ncm3",
			weir:      "cm1 terminating finalizers=(foregroundDeletion)\ncm2 owners=(cm3)\ncm3",
			want:      "cm2: dependents written during foreground deletion are judged",
		},
		"a dependent of an owner that waits for nobody": {
			before:    "cm1 terminating finalizers=(hold)\ncm3",
			operation: Operation{Verb: Create, Object: "cm2", Owners: references("cm1!block")},
			reference: "cm1 terminating finalizers=(hold)\ncm2 owners=(cm1!block)\ncm3",
			weir:      "cm1 terminating finalizers=(hold)\ncm3",
		},
		"a dependent of another kind blocks": {
			before: "cm1\nrole1 owners=(cm1!block)", operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm1 terminating finalizers=(foregroundDeletion)\nrole1 owners=(cm1!block)", weir: "role1 owners=(cm1!block)",
			want: "cm1: an unsound reference blocks no owner",
		},
		"a dependent blocks, and is not waited for": {
			before: "cm1\ncm2 owners=(cm1!block) finalizers=(hold)", operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm1 terminating finalizers=(foregroundDeletion)\ncm2 terminating owners=(cm1!block) finalizers=(hold)",
			weir:      "cm2 terminating owners=(cm1!block) finalizers=(hold)",
		},
		"an owner waits for one that waits for an unsound reference": {
			before: "cm1\ncm2 owners=(cm1!block)\nrole1 owners=(cm2!block)", operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm1 terminating finalizers=(foregroundDeletion)\ncm2 owners=(cm1!block) terminating finalizers=(foregroundDeletion)\nrole1 owners=(cm2!block)",
			weir:      "role1 owners=(cm2!block)",
			want:      "cm1: follows from another difference; cm2: an unsound reference blocks no owner",
		},
		"one difference has a cause and another none": {
			before: "cm1\nrole1 owners=(cm1!block)\ncm3", operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm1 terminating finalizers=(foregroundDeletion)\nrole1 owners=(cm1!block)\ncm3", weir: "role1 owners=(cm1!block)",
		},
		"nothing blocks any more": {
			before: "cm1\ncm2\ncm3 owners=(cm1!block, cm1, cm2)", operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm1 terminating finalizers=(foregroundDeletion)\ncm2\ncm3 owners=(cm2)", weir: "cm2\ncm3 owners=(cm2)",
			want: "cm1: a foreground owner that nothing blocks goes",
		},
		"nothing blocks, and Weir does not see it": {
			before: "cm1\ncm2\ncm3 owners=(cm1!block, cm1, cm2)", operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm2\ncm3 owners=(cm2)", weir: "cm1 terminating finalizers=(foregroundDeletion)\ncm2\ncm3 owners=(cm2)",
		},
		"an object waits for itself": {
			before: "cm1 owners=(cm1!block)", operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm1 owners=(cm1!block) terminating finalizers=(foregroundDeletion)", weir: "",
			want: "cm1: an object does not block itself",
		},
		"an object waits for itself and for another": {
			before:    "cm1 terminating finalizers=(foregroundDeletion)\ncm2 owners=(cm1!block) terminating finalizers=(hold)",
			operation: Operation{Verb: Adopt, Object: "cm1", Owners: references("cm1!block")},
			reference: "cm1 owners=(cm1!block) terminating finalizers=(foregroundDeletion)\ncm2 owners=(cm1!block) terminating finalizers=(hold)",
			weir:      "cm1 owners=(cm1!free) terminating finalizers=(foregroundDeletion)\ncm2 owners=(cm1!block) terminating finalizers=(hold)",
			want:      "cm1: an object does not block itself",
		},
		"owners that wait for each other": {
			before: "cm1 owners=(cm2!block) terminating finalizers=(hold)\ncm2 owners=(cm1!block) terminating finalizers=(foregroundDeletion)", operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm1 owners=(cm2!block) terminating finalizers=(foregroundDeletion, hold)\ncm2 owners=(cm1!block) terminating finalizers=(foregroundDeletion)",
			weir:      "cm1 owners=(cm2!block) terminating finalizers=(hold)\ncm2 owners=(cm1!free) terminating finalizers=(foregroundDeletion)",
			want:      "cm1: a cycle of owners that wait for each other is broken; cm2: a cycle of owners that wait for each other is broken",
		},
		"owners of which one does not wait": {
			before: "cm1 owners=(cm2!block) terminating finalizers=(hold)\ncm2 owners=(cm1!block) terminating finalizers=(hold)", operation: Operation{Verb: Touch, Object: "cm1"},
			reference: "cm1 owners=(cm2!block) terminating finalizers=(foregroundDeletion, hold)\ncm2 owners=(cm1!block) terminating finalizers=(hold)",
			weir:      "cm1 owners=(cm2!block) terminating finalizers=(hold)\ncm2 owners=(cm1!free) terminating finalizers=(hold)",
		},
		"what the reference freed from a cycle goes at once, with its dependents": {
			before: "cm1 owners=(cm2!block) finalizers=(hold)\ncm2 owners=(cm1!block) finalizers=(hold)\ncm3 owners=(cm2!block)", operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm1 owners=(cm2!block) terminating finalizers=(hold)\ncm2 owners=(cm1!free) finalizers=(hold)\ncm3 owners=(cm2!block)",
			weir:      "cm1 owners=(cm2!block) terminating finalizers=(hold)\ncm2 owners=(cm1!free) terminating finalizers=(foregroundDeletion, hold)",
			want:      "cm2: what is in no cycle is not unblocked; cm3: follows from another difference",
		},
		"a dependent that was not freed goes at once": {
			before: "cm1\ncm2 owners=(cm1!block) finalizers=(hold)", operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm1 terminating finalizers=(hold)\ncm2 owners=(cm1!block) finalizers=(hold)",
			weir:      "cm1 terminating finalizers=(hold)\ncm2 owners=(cm1!block) terminating finalizers=(foregroundDeletion, hold)",
		},
		"an object gets an owner beside one whose name changes": {
			before: "cm1\ncm2\ncm3 owners=(cm1!block)", operation: Operation{Verb: Own, Object: "cm3", Owners: references("cm1~name!block, cm2!block")},
			reference: "cm1\ncm2\ncm3 owners=(cm1~name!block, cm2!block)", weir: "cm1\ncm2\ncm3 owners=(cm2!block)",
			want: "cm3: references are judged whenever they change",
		},
		"an object gets an owner that is not there beside one whose name changes": {
			before: "cm1\ncm2\ncm3 owners=(cm1!block, cm2!block)", operation: Operation{Verb: Own, Object: "cm3", Owners: references("cm1~name!block, cm2!block, cm4!block")},
			reference: "cm1\ncm2\ncm3 owners=(cm1~name!block, cm2!block, cm4!block)", weir: "cm1\ncm2\ncm3 owners=(cm2!block)",
		},
		"an object that lives is unblocked": {
			before: "cm1", operation: Operation{Verb: Adopt, Object: "cm1", Owners: references("cm1!block")},
			reference: "cm1 owners=(cm1!block)", weir: "cm1 owners=(cm1!free)",
		},
		"a dependent is unblocked that is in no cycle": {
			before:    "cm1 terminating finalizers=(foregroundDeletion)",
			operation: Operation{Verb: Create, Object: "cm2", Owners: references("cm1!block")},
			reference: "cm1 terminating finalizers=(foregroundDeletion)\ncm2 owners=(cm1!block) terminating finalizers=(hold)",
			weir:      "cm1 terminating finalizers=(foregroundDeletion)\ncm2 owners=(cm1!free) terminating finalizers=(hold)",
		},
		"a dependent in no namespace, of an orphaning owner that is held": {
			before: "cm1\nrole1 owners=(cm1!block)", operation: Operation{Verb: Delete, Object: "cm1"}, orphaned: "cm1",
			reference: "cm1 terminating finalizers=(hold)\nrole1", weir: "cm1 terminating finalizers=(hold)\nrole1 owners=(cm1!block)",
			want: "role1: an unsound reference is not released",
		},
		"a living reference goes with an unsound one": {
			before: "cm1\nrole1 owners=(cm1!block, axle1)\naxle1", operation: Operation{Verb: Delete, Object: "cm1"}, orphaned: "cm1",
			reference: "role1\naxle1", weir: "role1 owners=(cm1!block, axle1)\naxle1",
		},
		"an object with a living owner goes when an unsound one lets go": {
			before: "cm1\nrole1 owners=(cm1!block, axle1)\naxle1", operation: Operation{Verb: Delete, Object: "cm1"}, orphaned: "cm1",
			reference: "axle1", weir: "role1 owners=(cm1!block, axle1)\naxle1",
		},
		"a dependent of an orphaning owner that is held": {
			before: "cm1\ncm2 owners=(cm1!block)", operation: Operation{Verb: Delete, Object: "cm1"}, orphaned: "cm1",
			reference: "cm1 terminating finalizers=(hold)\ncm2", weir: "cm1 terminating finalizers=(hold)\ncm2 owners=(cm1!block)",
		},
		"a dependent that cannot be resolved, of an orphaning owner": {
			before: "cm1\ncm2 owners=(cm1~unserved)", operation: Operation{Verb: Delete, Object: "cm1"}, orphaned: "cm1",
			reference: "cm2", weir: "cm2 owners=(cm1~unserved)",
			want: "cm2: an unsound reference is not released",
		},
		"a dependent that can be resolved, of an orphaning owner": {
			before: "cm1\ncm2 owners=(cm1)", operation: Operation{Verb: Delete, Object: "cm1"}, orphaned: "cm1",
			reference: "cm2", weir: "cm2 owners=(cm1)",
		},
		"a dependent is deleted when its owner lets go": {
			before: "cm1\ncm2 owners=(cm1)", operation: Operation{Verb: Delete, Object: "cm1"}, orphaned: "cm1",
			reference: "", weir: "cm2 owners=(cm1)",
		},
		"a dependent is lost in orphaning": {
			before: "cm1\ncm2 owners=(cm1)", operation: Operation{Verb: Delete, Object: "cm1"}, orphaned: "cm1",
			reference: "cm2", weir: "",
		},
		"a dependent of an owner that let go": {
			before: "", operation: Operation{Verb: Create, Object: "cm2", Owners: references("cm1!block")}, orphaned: "cm1",
			reference: "", weir: "cm2",
			want: "cm2: dependents written after orphaning are released",
		},
		"a dependent of an owner that did not": {
			before: "", operation: Operation{Verb: Create, Object: "cm2", Owners: references("cm1!block")},
			reference: "", weir: "cm2",
		},
		"a chain is unblocked": {
			before:    "cm1 owners=(cm2)\ncm2 owners=(cm1!block)",
			operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm1 owners=(cm2) terminating finalizers=(hold)\ncm2 owners=(cm1!free)",
			weir:      "cm1 owners=(cm2) terminating finalizers=(hold)",
			want:      "cm2: what is in no cycle is not unblocked",
		},
		"an owner waits no more for what was unblocked": {
			before:    "cm1 terminating finalizers=(hold)\ncm2 owners=(cm1!block)",
			operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm1 terminating finalizers=(hold)\ncm2 owners=(cm1!free)",
			weir:      "cm1 terminating finalizers=(foregroundDeletion, hold)\ncm2 owners=(cm1!block) terminating finalizers=(hold)",
			want:      "cm1: what is in no cycle is not unblocked; cm2: what is in no cycle is not unblocked",
		},
		"an owner does not wait for what blocks it": {
			before:    "cm1 terminating finalizers=(hold)\ncm2 owners=(cm1!block)",
			operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm1 terminating finalizers=(hold)\ncm2 owners=(cm1!block)",
			weir:      "cm1 terminating finalizers=(foregroundDeletion, hold)\ncm2 owners=(cm1!block)",
		},
		"an owner waits for what blocks nobody": {
			before:    "cm1 terminating finalizers=(hold)\ncm2 owners=(cm1!free)",
			operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm1 terminating finalizers=(hold)\ncm2 owners=(cm1!free)",
			weir:      "cm1 terminating finalizers=(foregroundDeletion, hold)\ncm2 owners=(cm1!free)",
		},
		"a cycle is unblocked, and its owner gone before the rest is deleted foreground": {
			before:    "cm1 owners=(cm2!block)\ncm2 owners=(cm1) finalizers=(hold)\ncm3 owners=(cm2)\ncm4 owners=(cm3)",
			operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm2 owners=(cm1!free) finalizers=(hold) terminating\ncm3 owners=(cm2)\ncm4 owners=(cm3)",
			weir:      "cm2 owners=(cm1) finalizers=(hold) terminating",
			want:      "cm2: what is in no cycle is not unblocked; cm3: follows from another difference; cm4: follows from another difference",
		},
		"the dependents of what was not unblocked are lost": {
			before:    "cm1 owners=(cm2!block)\ncm2 owners=(cm1) finalizers=(hold)\ncm3 owners=(cm2)",
			operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm2 owners=(cm1) finalizers=(hold) terminating\ncm3 owners=(cm2)",
			weir:      "cm2 owners=(cm1) finalizers=(hold) terminating",
		},
		"an object is lost beside what was unblocked": {
			before:    "cm1 owners=(cm2!block)\ncm2 owners=(cm1) finalizers=(hold)\ncm3",
			operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm2 owners=(cm1!free) finalizers=(hold) terminating\ncm3",
			weir:      "cm2 owners=(cm1) finalizers=(hold) terminating",
		},
		"a user unblocks": {
			before:    "cm1 owners=(cm2)\ncm2 owners=(cm1!free)",
			operation: Operation{Verb: Delete, Object: "cm1"},
			reference: "cm1 owners=(cm2) terminating finalizers=(hold)\ncm2 owners=(cm1!free)",
			weir:      "cm1 owners=(cm2) terminating finalizers=(hold)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := read(t, test.before)
			c := Case{
				Operation: test.operation, Before: before, BeforeReference: before,
				Reference: read(t, test.reference), Weir: read(t, test.weir), Orphaned: map[string]bool{test.orphaned: true},
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
			if diff := cmp.Diff(test.want, strings.Join(have, "; ")); diff != "" {
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

func TestScriptsFollowFromTheirSeedAndNumber(t *testing.T) {
	verbs := map[Verb]int{}
	for n := range 100 {
		w := Generate(7, n, 30)
		if diff := cmp.Diff(w, Generate(7, n, 30)); diff != "" {
			t.Fatalf("world %d is not always the same:\n%s", n, diff)
		}
		for _, o := range w.Script {
			verbs[o.Verb]++
		}
	}
	for _, v := range []Verb{Create, Delete, Own, Adopt, Disown, Block, Unblock, Finalize, Unfinalize, Touch} {
		if verbs[v] < 20 {
			t.Errorf("%d operations %s in 100 worlds", verbs[v], v)
		}
	}
	if cmp.Equal(Generate(7, 0, 30), Generate(8, 0, 30)) {
		t.Error("the seed makes no difference")
	}
}

func TestReferencesAreReadAsTheyWereWritten(t *testing.T) {
	r := newRun(World{Script: []Operation{
		{Verb: Create, Object: "cm1", Namespace: "a"}, {Verb: Create, Object: "cm2", Namespace: "a", As: "cm1"},
		{Verb: Create, Object: "gear1", Namespace: "a"}, {Verb: Create, Object: "role1"}, {Verb: Create, Object: "axle1"},
	}}, "w")
	for _, text := range []string{
		"cm1", "cm2!block", "cm2~name", "cm1~kind!free", "cm1~unserved", "gear1~version!block", "gear1~unserved",
		"role1~kind", "axle1~version", "axle1~kind!block", "sec9",
	} {
		want := reference(text)
		have, err := r.read(r.written(want, r.absentUID(want.Owner)), want.Owner)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s (-written +read):\n%s", text, diff)
		}
	}
	stranger := r.written(reference("cm1"), "1")
	stranger.Kind = "Namespace"
	if found, err := r.read(stranger, "cm1"); err == nil {
		t.Errorf("a reference that nobody wrote is read as %s", found)
	}
}
