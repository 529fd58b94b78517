package insight

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/script"
)

// TestScripts plays testdata/*.txt: the language of the graph's scripts, without answers to its
// lines, and besides
//
//	plan UID… [cascade=background|foreground|orphan] [policy=KIND:PROPAGATION[:KEPT-KIND]] [brake=KIND:LIMIT [decided]] [archive=KIND] [full] [json]
//	plan garbage=RESOURCE.GROUP
//	tree UID [full]
//	pending
//	orphans [full]
//	why UID
//
// Each of these is asked about what all lines before it have made.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var before [][]string // lines that make the cluster, each with what is below it
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var below []string
			if d.Input != "" {
				below = strings.Split(d.Input, "\n")
			}
			words := strings.Fields(d.FullCmd())
			if ask, ok := asks[words[0]]; ok {
				var out strings.Builder
				if *picture != "" && path == "testdata/documents.txt" && words[0] == "plan" {
					pictured(t, play(t, before), words[1:])
				}
				if err := ask(play(t, before), words[1:], Style{}, &out); err != nil {
					return "error: " + err.Error() + "\n"
				}
				return out.String()
			}
			before = append(before, append([]string{d.FullCmd()}, below...))
			play(t, before)
			return ""
		})
	})
}

// play makes a World of lines.
func play(t *testing.T, lines [][]string) *World {
	t.Helper()
	r := script.New()
	for _, l := range lines {
		if answer, err := r.Run(l[0], l[1:]...); err != nil || strings.Contains(answer, "error:") {
			t.Fatalf("%s: %v %s", l[0], err, answer)
		}
	}
	var kinds []graph.Resource
	for _, k := range r.Graph.Stats().Kinds {
		if k.Served {
			kinds = append(kinds, k.Resource)
		}
	}
	w := NewWorld("", kinds)
	w.Graph = r.Graph
	for _, k := range r.Graph.Stats().Kinds {
		switch k.State {
		case graph.Synced:
			w.read[k.GroupResource()] = ""
		case graph.Failing, graph.Forbidden:
			w.unread[k.GroupResource()] = Unread{Kind: k.GroupResource().String(), Reason: k.Reason, Forbidden: k.State == graph.Forbidden}
		}
	}
	return w
}

var asks = map[string]func(w *World, args []string, style Style, out *strings.Builder) error{
	"plan": func(w *World, args []string, style Style, out *strings.Builder) error {
		d, asJSON := Deletion{Propagation: metav1.DeletePropagationBackground}, false
		for _, a := range args {
			switch cascade, ok := strings.CutPrefix(a, "cascade="); {
			case ok:
				d.Propagation = metav1.DeletionPropagation(strings.ToUpper(cascade[:1]) + cascade[1:])
			case a == "full":
				style.Full = true
			case a == "doubt":
				d.Enforce = func(graph.View) Enforcement { return Enforcement{Doubt: "its labels could not be read"} }
			case strings.HasPrefix(a, "policy="):
				d.Enforce = enforcing(strings.TrimPrefix(a, "policy="))
			case strings.HasPrefix(a, "brake="):
				d.Enforce = braking(strings.TrimPrefix(a, "brake="))
			case strings.HasPrefix(a, "archive="):
				kind := schema.ParseGroupResource(strings.TrimPrefix(a, "archive="))
				d.Enforce = func(v graph.View) (e Enforcement) {
					if v.Kind == kind {
						e.Archive = "undo"
					}
					return e
				}
			case a == "decided":
				d.Decided = true
			case a == "json":
				asJSON = true
			case strings.HasPrefix(a, "garbage="):
				d.Roots, d.Garbage = w.Garbage(schema.ParseGroupResource(strings.TrimPrefix(a, "garbage="))), true
			default:
				d.Roots = append(d.Roots, types.UID(a))
			}
		}
		p := w.Plan(d)
		if err := w.Graph.Check(); err != nil {
			return fmt.Errorf("the graph is broken: %w", err)
		}
		if asJSON {
			enc := json.NewEncoder(out)
			enc.SetIndent("", " ")
			return enc.Encode(p)
		}
		return p.Draw(out, style)
	},
	"tree": func(w *World, args []string, style Style, out *strings.Builder) error {
		style.Full = args[len(args)-1] == "full"
		return DrawTree(out, w.Tree(types.UID(args[0]), time.Time{}), style)
	},
	"pending": func(w *World, _ []string, style Style, out *strings.Builder) error {
		return DrawPending(out, w.Pending(time.Time{}), "", style)
	},
	"orphans": func(w *World, args []string, style Style, out *strings.Builder) error {
		style.Full = len(args) > 0
		return DrawOrphans(out, w.Orphans(), "", style)
	},
	"why": func(w *World, args []string, style Style, out *strings.Builder) error {
		a, ok := w.Why(types.UID(args[0]), Facts{}, time.Time{})
		if !ok {
			out.WriteString("not there\n")
			return nil
		}
		return a.Draw(out, style)
	},
}

// enforcing is a policy that has objects of a kind deleted with a propagation: KIND:PROPAGATION.
func enforcing(policy string) func(graph.View) Enforcement {
	kind, rest, _ := strings.Cut(policy, ":")
	propagation, kept, keeps := strings.Cut(rest, ":")
	return func(v graph.View) Enforcement {
		if v.Kind != schema.ParseGroupResource(kind) {
			return Enforcement{}
		}
		e := Enforcement{By: "shaping", Propagation: metav1.DeletionPropagation(propagation)}
		if keeps {
			e.Keeps = func(kind schema.GroupResource) bool { return kind == schema.ParseGroupResource(kept) }
		}
		return e
	}
}

// braking is a policy whose brake holds objects of a kind with which more goes than LIMIT:
// KIND:LIMIT. By the built-in collector none is held that is deleted with foreground.
func braking(policy string) func(graph.View) Enforcement {
	kind, rest, _ := strings.Cut(policy, ":")
	limit, _ := strconv.Atoi(rest)
	return func(v graph.View) Enforcement {
		if v.Kind != schema.ParseGroupResource(kind) {
			return Enforcement{}
		}
		e := Enforcement{Limit: &limit, LimitBy: "few"}
		if slices.Contains(v.Finalizers, metav1.FinalizerOrphanDependents) {
			e.Propagation = metav1.DeletePropagationOrphan
		}
		if v.Name == "early" && slices.Contains(v.Finalizers, metav1.FinalizerDeleteDependents) {
			e.Unheld = "another collector may begin"
		}
		return e
	}
}
