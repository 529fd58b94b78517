package insight

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// worldOf are ConfigMaps by name, each with the names of its owners.
func worldOf(owners map[string][]string) *World {
	w := NewWorld("x", []graph.Resource{{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}})
	var objects []metav1.PartialObjectMetadata
	for name, of := range owners {
		m := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: types.UID(name), ResourceVersion: "1"}}
		for _, o := range of {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: o, UID: types.UID(o)})
		}
		objects = append(objects, m)
	}
	w.List(schema.GroupResource{Resource: "configmaps"}, "1", objects)
	return w
}

// TestExtremesAreDrawn: a chain longer than any that is made, and an object with ten thousand
// owners, cost no more than what is there to be told. What grows with the square of it would not
// end here.
func TestExtremesAreDrawn(t *testing.T) {
	const n = 20_000
	chain, many := map[string][]string{"o0": nil}, map[string][]string{}
	for i := 1; i < n; i++ {
		chain[fmt.Sprintf("o%d", i)] = []string{fmt.Sprintf("o%d", i-1)}
	}
	for i := range 10_000 {
		name := fmt.Sprintf("owner-%05d", i)
		many[name] = nil
		many["asked"] = append(many["asked"], name)
	}
	for name, c := range map[string]struct {
		owners map[string][]string
		ask    func(w *World, out io.Writer) error
		says   string
	}{
		"plan of a chain": {chain, func(w *World, out io.Writer) error {
			return w.Plan(Deletion{Roots: []types.UID{"o0"}, Propagation: metav1.DeletePropagationBackground}).Draw(out, Style{})
		}, fmt.Sprintf("… %d lines more, with %[1]d objects: --full shows them\n\nPlan: %d objects are deleted in %[2]d steps.", n-39, n)},
		"foreground plan of a chain": {chain, func(w *World, out io.Writer) error {
			return w.Plan(Deletion{Roots: []types.UID{"o0"}, Propagation: metav1.DeletePropagationForeground}).Draw(out, Style{})
		}, fmt.Sprintf("Plan: %d objects are deleted", n)},
		"tree of a chain": {chain, func(w *World, out io.Writer) error {
			return DrawTree(out, w.Tree(types.UID(fmt.Sprintf("o%d", n/2)), time.Time{}), Style{})
		}, "--full shows them"},
		"tree of ten thousand owners": {many, func(w *World, out io.Writer) error {
			return DrawTree(out, w.Tree("asked", time.Time{}), Style{})
		}, "▶ configmaps/asked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if err := c.ask(worldOf(c.owners), &out); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), c.says) || strings.Count(out.String(), "\n") > mostLines+3 {
				t.Errorf("no %q in, or too many lines:\n%s", c.says, out.String())
			}
		})
	}
}

// TestNamesOfOthersStayInTheirLine: who may make a Role, or write an owner reference, chooses
// names; and no user is made to believe by them what no answer says, or has a terminal obey them.
func TestNamesOfOthersStayInTheirLine(t *testing.T) {
	const forged = "- namespaces/prod: is deleted"
	nasty := "x\n" + forged + "\x1b[2J"
	owners := map[string][]string{"root": nil, nasty: {"root"}, "below": {nasty}, "stray": {"gone\n" + forged + "\u009b"}}
	asked := types.UID(nasty)
	for name, ask := range map[string]func(w *World, out io.Writer) error{
		"plan": func(w *World, out io.Writer) error {
			return w.Plan(Deletion{Roots: []types.UID{"root"}, Propagation: metav1.DeletePropagationBackground}).Draw(out, Style{Full: true})
		},
		"tree":    func(w *World, out io.Writer) error { return DrawTree(out, w.Tree("stray", time.Time{}), Style{}) },
		"up":      func(w *World, out io.Writer) error { return DrawTree(out, w.Tree(asked, time.Time{}), Style{}) },
		"orphans": func(w *World, out io.Writer) error { return DrawOrphans(out, w.Orphans(), "", Style{}) },
		"why": func(w *World, out io.Writer) error {
			a, _ := w.Why("below", Facts{}, time.Time{})
			return a.Draw(out, Style{})
		},
		"why of it": func(w *World, out io.Writer) error {
			a, _ := w.Why(asked, Facts{}, time.Time{})
			return a.Draw(out, Style{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := ask(worldOf(owners), &out); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), `\n`+forged) {
				t.Errorf("the name is not told:\n%q", out.String())
			}
			for line := range strings.Lines(out.String()) {
				text := strings.TrimSuffix(line, "\n")
				if strings.HasPrefix(strings.TrimSpace(text), forged) || strings.ContainsAny(text, "\x1b\u009b") {
					t.Errorf("a name has a line of its own, or is obeyed:\n%q", out.String())
				}
				if at := strings.Index(text, "kubectl"); at >= 0 && strings.Contains(text, "x\\n") && !strings.Contains(text[at:], "'") {
					t.Errorf("a command names it as no shell takes it: %s", text)
				}
			}
		})
	}
}

// TestPlanIsNoLongerThanAScreen: however much policies refuse, and could not be read; unless all of
// it is asked for.
func TestPlanIsNoLongerThanAScreen(t *testing.T) {
	p := &Plan{}
	for i := range 200 {
		o := Object{Kind: "configmaps", Namespace: "x", Name: fmt.Sprintf("c%03d", i), UID: types.UID(fmt.Sprint(i))}
		p.Roots = append(p.Roots, o)
		p.Items = append(p.Items, &Item{Object: o, Outcome: Deleted, Why: "asked for", Finalizers: []string{fmt.Sprintf("example.com/%d", i)}})
		p.Verdicts = append(p.Verdicts, Verdict{Object: o, Warnings: []string{"w"}, Refused: i >= 100, Message: "no", Confirm: "kubectl annotate"})
		p.Unread = append(p.Unread, Unread{Kind: fmt.Sprintf("kind%03d", i), Reason: "no"})
	}
	var short, full strings.Builder
	if err := errors.Join(p.Draw(&short, Style{}), p.Draw(&full, Style{Full: true})); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{
		"✗ configmaps/x/c100: ", "… and 196 more deletes about which policies have something to say: --full shows them", "objects: --full shows them", "? kind000 could not be read: no\n",
		"? and 196 more could not be read: --full names them", "Plan: policies refuse 100 of 200 deletes",
	} {
		if !strings.Contains(short.String(), says) {
			t.Errorf("no %q", says)
		}
	}
	if n := strings.Count(short.String(), "\n"); n > mostLines+3 {
		t.Errorf("%d lines, want about a screen:\n%s", n, &short)
	}
	for _, says := range []string{"c000: w", "c199: a policy refuses", "kind199 could"} {
		if !strings.Contains(full.String(), says) {
			t.Errorf("no %q in full", says)
		}
	}
}
