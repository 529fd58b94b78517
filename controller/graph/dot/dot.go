// Package dot draws objects and their owners for Graphviz: what the leader serves at the path of
// kube-controller-manager's debug page, what kubectl weir prints with -o dot, and the drawings of
// the scripts. It is pure, and keeps nothing.
package dot

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	gonum "gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/encoding"
	encoder "gonum.org/v1/gonum/graph/encoding/dot"
	"gonum.org/v1/gonum/graph/iterator"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Write draws objects and their owners in the format of kube-controller-manager's debug page (RB
// 9.8): edges lead from dependents to owners; objects that own nothing and that nothing owns are
// left out; owners that are not among the views are drawn as missing.
func Write(w io.Writer, views []graph.View) error {
	text, err := encoder.Marshal(newDrawing(views), "full", "", "  ")
	if err != nil {
		return fmt.Errorf("draw %d objects: %w", len(views), err)
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write %d objects: %w", len(views), err)
	}
	return nil
}

// drawing is what is drawn, sorted by uid. It is its own graph because the ready-made ones know no
// object that owns itself.
type drawing struct {
	vertices []*vertex
	byUID    map[types.UID]*vertex
}

func newDrawing(views []graph.View) *drawing {
	d := &drawing{byUID: map[types.UID]*vertex{}}
	views = slices.Clone(views)
	slices.SortStableFunc(views, func(a, b graph.View) int {
		return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Ref.String(), b.Ref.String()))
	})
	for i := range views {
		d.add(vertexOf(&views[i]))
	}
	for i := range views {
		v := d.byUID[views[i].UID]
		for _, o := range views[i].Owners {
			owner := d.add(missing(o))
			owner.linked, v.linked = true, true
			v.owners = append(v.owners, owner)
		}
		v.linked = v.linked || views[i].Dependents > 0
	}
	d.vertices = slices.DeleteFunc(d.vertices, func(v *vertex) bool { return !v.linked })
	slices.SortFunc(d.vertices, func(a, b *vertex) int { return cmp.Compare(a.uid, b.uid) })
	for i, v := range d.vertices {
		v.id = int64(i)
	}
	return d
}

// add draws a vertex unless there is one of its uid: an object comes before a mere reference to it.
func (d *drawing) add(v *vertex) *vertex {
	if there := d.byUID[v.uid]; there != nil {
		return there
	}
	d.byUID[v.uid] = v
	d.vertices = append(d.vertices, v)
	return v
}

// vertex is one uid.
type vertex struct {
	id     int64
	uid    types.UID
	gvk    schema.GroupVersionKind
	place  string // its namespace
	name   string
	owners []*vertex
	linked bool

	missing, beingDeleted, deletingDependents, virtual bool
}

func vertexOf(v *graph.View) *vertex {
	return &vertex{
		uid: v.UID, gvk: schema.GroupVersionKind{Group: v.Group, Version: v.Version, Kind: v.KindName},
		place: v.Namespace, name: v.Name, beingDeleted: v.Deleting, deletingDependents: v.Foreground,
	}
}

// missing is an owner as a reference has it. Virtual, unless it is known not to be there: no watch
// has seen it, and it may exist.
func missing(o graph.OwnerView) *vertex {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		gv = schema.GroupVersion{Version: o.APIVersion}
	}
	return &vertex{uid: o.UID, gvk: gv.WithKind(o.Kind), name: o.Name, missing: true, virtual: !o.Gone()}
}

// DOTID and Attributes quote all there is: what the encoder leaves as it is may look like HTML, or
// like quoted already.

// DOTID is the name of the vertex in the drawing.
func (v *vertex) DOTID() string { return strconv.Quote(string(v.uid)) }

// Attributes are what is known of the object, and how it is labelled.
func (v *vertex) Attributes() []encoding.Attribute {
	kind := v.gvk.Kind + "." + v.gvk.Version
	if v.gvk.Group != "" {
		kind += "." + v.gvk.Group
	}
	label := fmt.Sprintf("uid=%s\nnamespace=%s\n%s/%s\n", v.uid, v.place, kind, v.name)
	var flags []string
	for _, f := range []struct {
		on   bool
		name string
	}{
		{v.beingDeleted, "beingDeleted"}, {v.deletingDependents, "deletingDependents"},
		{v.virtual, "virtual"}, {v.missing, "missingFromGraph"},
	} {
		if f.on {
			flags = append(flags, f.name)
		}
	}
	if len(flags) > 0 {
		label += strings.Join(flags, ",") + "\n"
	}
	var attributes []encoding.Attribute
	for _, a := range [][2]string{
		{"label", label}, {"group", v.gvk.Group}, {"version", v.gvk.Version}, {"kind", v.gvk.Kind},
		{"namespace", v.place}, {"name", v.name}, {"uid", string(v.uid)},
		{"missing", strconv.FormatBool(v.missing)}, {"beingDeleted", strconv.FormatBool(v.beingDeleted)},
		{"deletingDependents", strconv.FormatBool(v.deletingDependents)}, {"virtual", strconv.FormatBool(v.virtual)},
	} {
		attributes = append(attributes, encoding.Attribute{Key: a[0], Value: strconv.Quote(a[1])})
	}
	return attributes
}

// The methods by which the encoder walks a drawing.

var _ gonum.Directed = (*drawing)(nil)

func (v *vertex) ID() int64 { return v.id }

func (d *drawing) Node(id int64) gonum.Node { return d.vertices[id] }

func (d *drawing) Nodes() gonum.Nodes { return nodesOf(d.vertices) }

func (d *drawing) From(id int64) gonum.Nodes {
	owners := slices.Clone(d.vertices[id].owners)
	slices.SortFunc(owners, func(a, b *vertex) int { return cmp.Compare(a.id, b.id) })
	return nodesOf(slices.Compact(owners))
}

func (d *drawing) To(id int64) gonum.Nodes {
	var dependents []*vertex
	for _, v := range d.vertices {
		if slices.Contains(v.owners, d.vertices[id]) {
			dependents = append(dependents, v)
		}
	}
	return nodesOf(dependents)
}

func (d *drawing) HasEdgeFromTo(from, to int64) bool {
	return slices.Contains(d.vertices[from].owners, d.vertices[to])
}

func (d *drawing) HasEdgeBetween(a, b int64) bool {
	return d.HasEdgeFromTo(a, b) || d.HasEdgeFromTo(b, a)
}

func (d *drawing) Edge(from, to int64) gonum.Edge {
	if !d.HasEdgeFromTo(from, to) {
		return nil
	}
	return link{d.vertices[from], d.vertices[to]}
}

func nodesOf(vertices []*vertex) gonum.Nodes {
	nodes := make([]gonum.Node, len(vertices))
	for i, v := range vertices {
		nodes[i] = v
	}
	return iterator.NewOrderedNodes(nodes)
}

type link struct{ from, to *vertex }

func (l link) From() gonum.Node         { return l.from }
func (l link) To() gonum.Node           { return l.to }
func (l link) ReversedEdge() gonum.Edge { return link{l.to, l.from} }
