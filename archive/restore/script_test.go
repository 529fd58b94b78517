package restore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/script"
)

// TestScripts plays testdata/*.txt:
//
//	serve [KIND…]         the kinds that are served, as the graph's scripts have them
//	record OBJECT         an object of the tree t: what follows "see" in the graph's scripts, and
//	                      below it more of it, as YAML
//	live OBJECT           what stands there now; "made=UID": restored, of the recorded uid
//	unread KIND/NS/NAME   may not be read
//	forget                all of these
//	plan [replace] [status] [only=KIND/NS/NAME] [full]
//	names                 what has to be read for it
//
// Kinds of the group example.com are custom, and have a status.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // what rapid keeps
		}
		w := World{Tree: "t", Live: map[Ref]*unstructured.Unstructured{}, Unread: map[Ref]string{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			words := strings.Fields(d.FullCmd())
			switch words[0] {
			case "serve":
				w.Kinds = kindsOf(t, d.FullCmd())
				return ""
			case "forget":
				w.Records, w.Live = nil, map[Ref]*unstructured.Unstructured{}
				return ""
			case "record", "live":
				o, made := objectOf(t, strings.Join(words[1:], " "), d.Input)
				r := Record(o)
				if words[0] == "record" {
					w.Records = append(w.Records, r)
					return ""
				}
				if made != "" {
					annotations := map[string]string{"weir.dev/restored": "t/" + made}
					maps.Copy(annotations, o.Object.GetAnnotations())
					o.Object.SetAnnotations(annotations)
				}
				w.Live[RefOf(r)] = o.Object
				return ""
			case "unread":
				w.Unread[refOf(words[1])] = "forbidden"
				return ""
			case "names":
				var b strings.Builder
				for _, ref := range Names(w.Records, w.Kinds) {
					fmt.Fprintln(&b, ref)
				}
				return b.String()
			case "plan":
				return planned(t, w, words[1:])
			}
			t.Fatalf("unknown command %q", words[0])
			return ""
		})
	})
}

func planned(t *testing.T, w World, words []string) string {
	var o Options
	var only []Ref
	full := false
	for _, word := range words {
		switch name, ref, _ := strings.Cut(word, "="); name {
		case "replace":
			o.Replace = true
		case "status":
			o.Status = true
		case "full":
			full = true
		case "only":
			only = append(only, refOf(ref))
			o.Only = func(r Ref) bool { return slices.Contains(only, r) }
		default:
			t.Fatalf("unknown word %q", word)
		}
	}
	p := Make(w, o)
	again := Make(w, o)
	if diff := cmp.Diff(p.Acting(), again.Acting()); diff != "" {
		t.Errorf("another plan at the second time (-first +second):\n%s", diff)
	}
	var b strings.Builder
	for _, s := range p.Steps {
		b.WriteString(line(s))
		if full && s.Outcome.Acts() && s.Object != nil {
			data, err := yaml.Marshal(s.Object.Object)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(strings.TrimSuffix("    "+strings.ReplaceAll(string(data), "\n", "\n    "), "    "))
		}
	}
	return b.String()
}

// line is a step.
func line(s *Step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", s.Outcome, s.Ref)
	owners := s.References
	if s.Object != nil && s.Outcome.Acts() {
		owners = append(owners, s.Object.GetOwnerReferences()...)
	}
	if len(owners) > 0 {
		fmt.Fprintf(&b, " owners=%s", script.Owners(owners))
	}
	for _, l := range s.Links {
		fmt.Fprintf(&b, " link=%s", l.Owner)
	}
	if s.Status != nil {
		fmt.Fprintf(&b, " status=%v", s.Status)
	}
	for _, m := range s.Managers {
		fmt.Fprintf(&b, " manager=%s", m.Manager)
	}
	for n, text := range slices.Concat([]string{s.Why}, s.Notes, s.Dropped) {
		if n > 0 || text != "" {
			fmt.Fprintf(&b, "; %s", text)
		}
	}
	return b.String() + "\n"
}

func refOf(text string) Ref {
	parts := strings.Split(text, "/")
	r := Ref{Kind: schema.ParseGroupResource(parts[0]), Name: parts[len(parts)-1]}
	if len(parts) == 3 {
		r.Namespace = parts[1]
	}
	return r
}

var scriptKinds []graph.Resource

func kindsOf(t *testing.T, text string) (list []Kind) {
	played(t, text, func(ev graph.Event) {
		scriptKinds = ev.(graph.Serving).Resources
		for _, k := range scriptKinds {
			custom := k.Group == "example.com"
			list = append(list, Kind{GroupResource: k.GroupResource(), Kind: k.Kind, Versions: k.Versions,
				Namespaced: k.Namespaced, Custom: custom, Status: custom})
		}
	})
	return list
}

// played reads a line of the graph's scripts.
func played(t *testing.T, text string, see func(graph.Event)) {
	t.Helper()
	r := script.New()
	r.Each = func(ev graph.Event) []types.UID { see(ev); return nil }
	if answer, err := r.Run(text); err != nil || strings.Contains(answer, "error") {
		t.Fatalf("%s: %v %s", text, err, answer)
	}
}

type written struct {
	Resource schema.GroupVersionResource
	Object   *unstructured.Unstructured
}

func objectOf(t *testing.T, text, below string) (out written, made string) {
	t.Helper()
	version := ""
	var words []string
	for word := range strings.FieldsSeq(text) {
		if value, ok := strings.CutPrefix(word, "made="); ok {
			made = value
		} else if value, ok := strings.CutPrefix(word, "version="); ok {
			version = value
		} else {
			words = append(words, word)
		}
	}
	played(t, "see "+strings.Join(words, " "), func(ev graph.Event) {
		o := ev.(graph.Observed).Object
		n := slices.IndexFunc(scriptKinds, func(k graph.Resource) bool { return k.GroupResource() == o.Kind })
		kind := "Unserved"
		if n >= 0 {
			kind = scriptKinds[n].Kind
			if version == "" {
				version = scriptKinds[n].Version
			}
		}
		if version == "" {
			version = "v1"
		}
		u := &unstructured.Unstructured{Object: map[string]any{}}
		if err := yaml.Unmarshal([]byte(below), &u.Object); err != nil {
			t.Fatal(err)
		}
		if u.Object == nil {
			u.Object = map[string]any{}
		}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: o.Kind.Group, Version: version, Kind: kind})
		u.SetName(o.Name)
		u.SetNamespace(o.Namespace)
		u.SetUID(o.UID)
		u.SetResourceVersion(o.ResourceVersion)
		u.SetOwnerReferences(o.Owners)
		u.SetFinalizers(o.Finalizers)
		if o.Deleting {
			u.SetDeletionTimestamp(&metav1.Time{})
			u.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		}
		out = written{o.Kind.WithVersion(version), u}
	})
	return out, made
}
