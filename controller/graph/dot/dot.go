// Package dot draws objects and their owners for Graphviz: what the leader serves at the path of
// kube-controller-manager's debug page, and the drawings of the scripts. It is pure, and keeps
// nothing.
package dot

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Write draws objects and their owners in the format of kube-controller-manager's debug page (RB
// 9.8): edges lead from dependents to owners; objects that own nothing and that nothing owns are
// left out; owners that are not among the views are drawn as missing.
func Write(w io.Writer, views []graph.View) error {
	out, all := bufio.NewWriter(w), vertices(views)
	edges := false
	fmt.Fprint(out, "strict digraph full {\n")
	for i, v := range all {
		if i == 0 {
			fmt.Fprint(out, "  // Node definitions.\n")
		}
		v.write(out)
		edges = edges || len(v.owners) > 0
	}
	if edges {
		fmt.Fprint(out, "\n  // Edge definitions.\n")
	}
	for _, v := range all {
		slices.SortFunc(v.owners, func(a, b *vertex) int { return cmp.Compare(a.uid, b.uid) })
		for _, owner := range slices.Compact(v.owners) {
			fmt.Fprintf(out, "  %q -> %q;\n", v.uid, owner.uid)
		}
	}
	fmt.Fprint(out, "}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write %d objects: %w", len(views), err)
	}
	return nil
}

// vertices returns what is drawn, sorted by uid. An object comes before a mere reference to it.
func vertices(views []graph.View) (all []*vertex) {
	byUID := map[types.UID]*vertex{}
	add := func(v *vertex) *vertex {
		if byUID[v.uid] == nil {
			byUID[v.uid] = v
			all = append(all, v)
		}
		return byUID[v.uid]
	}
	views = slices.Clone(views)
	slices.SortStableFunc(views, func(a, b graph.View) int {
		return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.String(), b.String()))
	})
	for i := range views {
		add(vertexOf(&views[i]))
	}
	for i := range views {
		v := byUID[views[i].UID]
		for _, o := range views[i].Owners {
			owner := add(missing(o))
			owner.linked, v.linked = true, true
			v.owners = append(v.owners, owner)
		}
		v.linked = v.linked || views[i].Dependents > 0
	}
	all = slices.DeleteFunc(all, func(v *vertex) bool { return !v.linked })
	slices.SortFunc(all, func(a, b *vertex) int { return cmp.Compare(a.uid, b.uid) })
	return all
}

// vertex is one uid.
type vertex struct {
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

// missing returns the vertex of an owner of which there is only a reference. It is virtual unless
// the owner is known to be gone: no watch has seen it, and it may exist.
func missing(o graph.OwnerView) *vertex {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		gv = schema.GroupVersion{Version: o.APIVersion}
	}
	return &vertex{uid: o.UID, gvk: gv.WithKind(o.Kind), name: o.Name, missing: true, virtual: !o.Gone()}
}

// write prints a vertex with its attributes and label. It quotes all of them: unquoted text may
// look like HTML, or as if it were quoted already.
func (v *vertex) write(out io.Writer) {
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
	fmt.Fprintf(out, "  %q [", v.uid)
	for _, a := range [][2]string{
		{"label", label}, {"group", v.gvk.Group}, {"version", v.gvk.Version}, {"kind", v.gvk.Kind},
		{"namespace", v.place}, {"name", v.name}, {"uid", string(v.uid)},
		{"missing", strconv.FormatBool(v.missing)}, {"beingDeleted", strconv.FormatBool(v.beingDeleted)},
		{"deletingDependents", strconv.FormatBool(v.deletingDependents)}, {"virtual", strconv.FormatBool(v.virtual)},
	} {
		fmt.Fprintf(out, "\n    %s=%q", a[0], a[1])
	}
	fmt.Fprint(out, "\n  ];\n")
}
