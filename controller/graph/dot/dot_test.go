package dot_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/graph/encoding"
	encoder "gonum.org/v1/gonum/graph/encoding/dot"
	"gonum.org/v1/gonum/graph/multi"

	gonum "gonum.org/v1/gonum/graph"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/graph/dot"
)

// TestDrawingIsReadBackAsItWas draws an object, its dependent and an owner that is not there under
// hostile names, and reads the drawing with a parser of the language.
func TestDrawingIsReadBackAsItWas(t *testing.T) {
	for _, name := range hostileNames {
		drawAndRead(t, name, "uid-"+name)
	}
	t.Logf("%d names", len(hostileNames))
}

var hostileNames = []string{
	"plain", "", " ", `"`, `""`, `"quoted"`, `back\slash`, `\`, `\n`, "line\nbreak", "tab\tand\x00nul", "größe-対象", "a b",
	"1.5", "-3",
	"node", "digraph", "<b>", "<", "->", "a;b", "{x}", "[y]", `"<"`, "// comment", "/* comment", "#", "'", "é́",
	"\xff\xfe", "%s", "𝔘",
}

func FuzzDrawing(f *testing.F) {
	for _, name := range hostileNames {
		f.Add(name, "uid")
		f.Add("name", name)
	}
	f.Fuzz(func(t *testing.T, name, uid string) {
		if asHTML(name) || asHTML(uid) {
			return
		}
		drawAndRead(t, name, uid)
	})
}

func drawAndRead(t *testing.T, name, uid string) {
	t.Helper()
	owner := types.UID(uid)
	view := func(uid types.UID, name string, owners ...graph.OwnerView) graph.View {
		return graph.View{
			Ref: graph.Ref{Namespace: "ns-" + name, Name: name, UID: uid}, Group: "g.example.com", Version: "v1",
			KindName: "Thing", Owners: owners,
		}
	}
	ref := func(uid types.UID, verdict string) graph.OwnerView {
		return graph.OwnerView{
			OwnerReference: metav1.OwnerReference{APIVersion: "g.example.com/v1", Kind: "Thing", Name: name, UID: uid},
			Verdict:        verdict,
		}
	}
	dependent := view(owner+"/dependent", name+"/dependent", ref(owner, "present"), ref(owner+"/lost", "absent"),
		ref(owner+"/unseen", "unknown"))
	dependent.Deleting = true
	views := []graph.View{dependent, view(owner, name, ref(owner, "present"))}

	var text bytes.Buffer
	if err := dot.Write(&text, views); err != nil {
		t.Fatal(err)
	}
	read := drawn{multi.NewDirectedGraph()}
	if err := encoder.UnmarshalMulti(text.Bytes(), read); err != nil {
		t.Fatalf("name %q, uid %q: %v\n%s", name, uid, err, text.String())
	}
	want := map[string]map[string]string{}
	vertex := func(uid types.UID, namespace, name, missing, virtual, deleting, flags string) {
		kind := "Thing.v1.g.example.com/" + name + "\n"
		want[string(uid)] = map[string]string{
			"label": fmt.Sprintf("uid=%s\nnamespace=%s\n%s%s", uid, namespace, kind, flags),
			"group": "g.example.com", "version": "v1", "kind": "Thing", "namespace": namespace, "name": name, "uid": string(uid),
			"missing": missing, "virtual": virtual, "beingDeleted": deleting, "deletingDependents": "false",
		}
	}
	vertex(owner, "ns-"+name, name, "false", "false", "false", "")
	vertex(dependent.UID, dependent.Namespace, dependent.Name, "false", "false", "true", "beingDeleted\n")
	vertex(owner+"/lost", "", name, "true", "false", "false", "missingFromGraph\n")
	vertex(owner+"/unseen", "", name, "true", "true", "false", "virtual,missingFromGraph\n")
	if diff := cmp.Diff(want, read.vertices()); diff != "" {
		t.Errorf("name %q, uid %q: vertices (-want +got):\n%s\n%s", name, uid, diff, text.String())
	}
	wantEdges := map[string]int{
		uid + " -> " + uid:                       1,
		uid + "/dependent -> " + uid:             1,
		uid + "/dependent -> " + uid + "/lost":   1,
		uid + "/dependent -> " + uid + "/unseen": 1,
	}
	if diff := cmp.Diff(wantEdges, read.edges()); diff != "" {
		t.Errorf("name %q, uid %q: edges (-want +got):\n%s\n%s", name, uid, diff, text.String())
	}
}

// drawn is what the parser fills.
type drawn struct{ *multi.DirectedGraph }

func (d drawn) NewNode() gonum.Node {
	return &drawnVertex{Node: d.DirectedGraph.NewNode(), attributes: map[string]string{}}
}

type drawnVertex struct {
	gonum.Node
	uid        string
	attributes map[string]string
}

func (v *drawnVertex) SetDOTID(id string) { v.uid = unquoted(id) }

func (v *drawnVertex) SetAttribute(a encoding.Attribute) error {
	v.attributes[a.Key] = unquoted(a.Value)
	return nil
}

// asHTML is what the parser takes for quoted HTML, and leaves quoted: after it, <b> and "<b>" are
// the same.
func asHTML(s string) bool { return strings.HasPrefix(s, `"<`) && strings.HasSuffix(s, `>"`) }

// unquoted undoes what the parser leaves.
func unquoted(s string) string {
	if asHTML(s) {
		if u, err := strconv.Unquote(s); err == nil {
			return u
		}
	}
	return s
}

func (d drawn) vertices() map[string]map[string]string {
	out := map[string]map[string]string{}
	for nodes := d.Nodes(); nodes.Next(); {
		v := nodes.Node().(*drawnVertex)
		out[v.uid] = v.attributes
	}
	return out
}

func (d drawn) edges() map[string]int {
	out := map[string]int{}
	for edges := d.Edges(); edges.Next(); {
		e := edges.Edge()
		for lines := d.Lines(e.From().ID(), e.To().ID()); lines.Next(); {
			out[e.From().(*drawnVertex).uid+" -> "+e.To().(*drawnVertex).uid]++
		}
	}
	return out
}
