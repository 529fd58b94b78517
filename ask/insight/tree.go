package insight

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/controller/graph"
)

// Node is an object in a tree of owners and dependents.
type Node struct {
	Object
	// State is terminating, foreground or orphaning; empty for an object that is not being deleted.
	State      string   `json:"state,omitempty"`
	Age        string   `json:"age,omitempty"`
	Finalizers []string `json:"finalizers,omitempty"`
	// Blocks reports whether the owner above waits for the object when it is deleted foreground,
	// Controller whether that owner is its controller.
	Blocks     bool `json:"blocks,omitempty"`
	Controller bool `json:"controller,omitempty"`
	// Lost describes the owners that it names and that do not exist.
	Lost []string `json:"lost,omitempty"`
	// Asked marks the object that the tree is about. Again marks one that is drawn elsewhere with
	// its dependents.
	Asked      bool    `json:"asked,omitempty"`
	Again      bool    `json:"again,omitempty"`
	Dependents []*Node `json:"dependents,omitempty"`
	// Content are the objects in the namespace, or of the definition, that the tree is about,
	// without those below an owner that is among them.
	Content []*Node `json:"content,omitempty"`
}

// Tree returns the object with its owners above it and its dependents below. There may be several
// roots if the object has several owners.
func (w *World) Tree(uid types.UID, now time.Time) []*Node {
	v, ok := w.Graph.Find(uid)
	if !ok {
		return nil
	}
	t := &treeing{world: w, now: now, asked: uid, above: map[types.UID]bool{uid: true}, ring: map[types.UID]bool{},
		path: map[types.UID][]*graph.View{}, met: map[types.UID]bool{}}
	t.climb(&v)
	return t.roots
}

type treeing struct {
	world *World
	now   time.Time
	asked types.UID
	above map[types.UID]bool          // the object and its direct and indirect owners
	path  map[types.UID][]*graph.View // for each of above: its dependents in above
	ring  map[types.UID]bool          // the object, and those of above that are also below it in a cycle
	met   map[types.UID]bool
	roots []*Node
}

// climb finds all owners of an object, direct and indirect, and draws the tree from the topmost.
func (t *treeing) climb(v *graph.View) {
	g := t.world.Graph
	var tops, all []graph.View
	todo := []graph.View{*v}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		all = append(all, v)
		top := true
		for _, o := range v.Owners {
			owner, ok := g.Find(o.UID)
			if !ok || !owns(o.Verdict) {
				continue
			}
			top = false
			if on := t.path[o.UID]; len(on) == 0 || on[len(on)-1] != &v { // or it names the owner twice
				t.path[o.UID] = append(on, &v)
			}
			if !t.above[o.UID] {
				t.above[o.UID] = true
				todo = append(todo, owner)
			}
		}
		if top {
			tops = append(tops, v)
		}
	}
	t.fall(v)
	slices.SortFunc(tops, byRef)
	above := all[1:] // the first is v
	slices.SortFunc(above, byRef)
	// Objects below no top are in a cycle of owners, or below one. A cycle with the asked object in
	// it begins at that object.
	if slices.ContainsFunc(v.Owners, func(o graph.OwnerView) bool { return t.ring[o.UID] }) {
		tops = append(tops, *v)
	}
	for _, v := range append(tops, above...) {
		if !t.met[v.UID] {
			t.roots = append(t.roots, t.below(&v, nil))
		}
	}
}

func byRef(a, b graph.View) int {
	return cmp.Or(strings.Compare(a.String(), b.String()), cmp.Compare(a.UID, b.UID))
}

// fall fills ring: it marks the objects of above that are also below v.
func (t *treeing) fall(v *graph.View) {
	if !t.ring[v.UID] {
		t.ring[v.UID] = true
		for _, d := range t.path[v.UID] {
			t.fall(d)
		}
	}
}

func owns(verdict string) bool {
	return verdict == "present" || verdict == "waiting" || verdict == "orphaning"
}

// below returns the node for an object, with its dependents as far as the tree goes.
func (t *treeing) below(v *graph.View, from *graph.View) *Node {
	if t.met[v.UID] {
		return &Node{Object: objectOf(v), Again: true, Asked: v.UID == t.asked}
	}
	n := t.node(v, from)
	t.met[v.UID] = true
	if t.above[v.UID] && !t.ring[v.UID] { // only the path to the asked object is drawn
		for _, d := range t.path[v.UID] {
			n.Dependents = append(n.Dependents, t.below(d, v))
		}
		return n
	}
	all := slices.DeleteFunc(t.world.Graph.Dependents(v.UID), func(d graph.View) bool {
		return !slices.ContainsFunc(d.Owners, func(o graph.OwnerView) bool { return o.UID == v.UID && owns(o.Verdict) })
	})
	slices.SortFunc(all, viewsByName)
	n.Dependents = make([]*Node, 0, len(all))
	for i := range all {
		n.Dependents = append(n.Dependents, t.below(&all[i], v))
	}
	if v.UID == t.asked {
		n.Content = t.content(v)
	}
	return n
}

// content returns the content of a namespace or a definition, each object below an owner that is
// among it.
func (t *treeing) content(of *graph.View) (out []*Node) {
	all := t.world.held(of)
	slices.SortFunc(all, byRef)
	held := make(map[types.UID]bool, len(all))
	for i := range all {
		held[all[i].UID] = true
	}
	draw := func(which func(*graph.View) bool) {
		for i := range all {
			if v := &all[i]; !t.met[v.UID] && which(v) {
				out = append(out, t.below(v, nil))
			}
		}
	}
	draw(func(v *graph.View) bool {
		return !slices.ContainsFunc(v.Owners, func(o graph.OwnerView) bool {
			return held[o.UID] && owns(o.Verdict)
		})
	})
	draw(func(*graph.View) bool { return true }) // the rest is in or below a cycle of owners
	slices.SortFunc(out, func(a, b *Node) int { return byName(&a.Object, &b.Object) })
	return out
}

func (t *treeing) node(v, from *graph.View) *Node {
	n := &Node{Object: objectOf(v), Lost: t.world.lost(v.UID), State: stateOf(v), Asked: v.UID == t.asked,
		Finalizers: v.Finalizers, Age: t.world.age(v.UID, t.now)}
	for _, o := range v.Owners {
		if from != nil && o.UID == from.UID {
			n.Blocks = n.Blocks || o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion
			n.Controller = n.Controller || o.Controller != nil && *o.Controller
		}
	}
	return n
}

func stateOf(v *graph.View) string {
	switch {
	case v.Foreground:
		return "foreground"
	case v.Orphaning:
		return "orphaning"
	case v.Deleting:
		return "terminating"
	}
	return ""
}

// age returns the age of an object, as kubectl writes it.
func (w *World) age(uid types.UID, now time.Time) string {
	m := w.Meta(uid)
	if m == nil || m.CreationTimestamp.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(m.CreationTimestamp.Time))
}

// DrawTree writes trees.
func DrawTree(out io.Writer, roots []*Node, style Style) error {
	namespace, fold := askedNamespace(roots), newFolding(style)
	var branches []*branch
	for _, r := range roots {
		branches = append(branches, r.branch(fold))
	}
	_, err := io.WriteString(out, textOf(linesOf(fold.alike(branches), style, mostLines), namespace, style))
	return err
}

// askedNamespace returns the namespace of the object that was asked about.
func askedNamespace(nodes []*Node) string {
	for _, n := range nodes {
		if n.Asked && n.Kind == namespaces.String() {
			return n.Name
		}
		if n.Asked {
			return n.Namespace
		}
		if ns := askedNamespace(n.Dependents); ns != "" {
			return ns
		}
	}
	return ""
}

func (n *Node) branch(fold *folding) *branch {
	b := &branch{symbol: "·", objects: []Object{n.Object}, note: n.note(fold.style)}
	kind := n.Kind
	switch {
	case n.Asked:
		b.symbol = "▶"
		kind += string(n.UID) // is like no other
	case n.State != "":
		b.symbol = "!"
	case len(n.Lost) > 0:
		b.symbol = "?"
	}
	for _, d := range slices.Concat(n.Dependents, n.Content) {
		b.below = append(b.below, d.branch(fold))
	}
	fold.seal(b, kind)
	return b
}

// note is what follows the name of a node. Ages are part of it with Full only: with them, few
// objects would be alike.
func (n *Node) note(style Style) string {
	var notes []string
	switch n.State {
	case "terminating":
		notes = append(notes, "terminating")
	case "foreground":
		notes = append(notes, "terminating, waits for its dependents")
	case "orphaning":
		notes = append(notes, "terminating, leaves its dependents")
	}
	if rest := slices.DeleteFunc(slices.Clone(n.Finalizers), collectors); len(rest) > 0 {
		notes = append(notes, "finalizers "+strings.Join(rest, ", "))
	}
	if n.Blocks {
		notes = append(notes, "blocks")
	}
	notes = append(notes, n.Lost...)
	if n.Again {
		notes = append(notes, "see above")
	}
	if n.Age != "" && style.Full {
		notes = append(notes, fmt.Sprintf("%s old", n.Age))
	}
	return strings.Join(notes, ", ")
}
