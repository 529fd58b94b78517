package graph_test

import (
	"cmp"
	"fmt"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	shown "github.com/weir-dev/weir/controller/words"
)

// cascade tries again and again whether one more object is deleted, too.
func (m *model) cascade(uid types.UID, kept func(schema.GroupResource) bool) ([]graph.Counted, bool) {
	var root *mObject
	down, incomplete := map[*mObject]bool{}, false
	for i := range m.objects {
		if o := &m.objects[i]; o.UID == uid { // one uid may stand under two kinds
			root, down[o] = o, true
			incomplete = incomplete || m.incomplete(o, false, graph.Listing, graph.Slow)
		}
	}
	if root == nil {
		return nil, false
	}
	drops := func(o *mObject) bool {
		return down[o] && !m.leavesOrphans(o) && (o.UID == uid ||
			!slices.Contains(o.Finalizers, metav1.FinalizerOrphanDependents))
	}
	cascade := func(o *mObject) bool {
		lost, others := false, 0
		for _, r := range o.Owners {
			owner, class := m.meant(wordsOf(r, o.Namespace)), m.class(r, o.Namespace)
			drop := owner != nil && drops(owner)
			lost = lost || drop
			if r.UID == uid && kept(o.Kind) {
				continue // is taken off
			}
			if others++; class == "O" || !drop && class != "A" && class != "W" && (owner == nil || !m.goes(owner)) {
				return false
			}
		}
		return lost && others > 0
	}
	var also []*mObject
	along := func(o *mObject) bool { // with its namespace, or its definition
		return slices.ContainsFunc(also, func(d *mObject) bool {
			return d.Kind.String() == "namespaces" && d.Name == o.Namespace && o.counted() ||
				d.Kind.Resource == "customresourcedefinitions" && d.Name == o.Kind.String()
		})
	}
	for again := true; again; {
		again = false
		for i := range m.objects {
			if o := &m.objects[i]; !down[o] && (cascade(o) || along(o)) {
				down[o], again = true, true
				also = append(also, o)
			}
		}
	}
	return inKinds(also, root.Namespace), !incomplete
}

// goes tells whether an object is being deleted, or its owners are gone or wait for it.
func (m *model) goes(o *mObject) bool {
	return o.Deleting || len(o.Owners) > 0 && !slices.ContainsFunc(o.Owners, func(r metav1.OwnerReference) bool {
		class := m.class(r, o.Namespace)
		return class != "A" && class != "W"
	})
}

// inKinds counts by kind, with the first three names.
func inKinds(objects []*mObject, namespace string) (out []graph.Counted) {
	for _, o := range objects {
		name := o.Name
		if o.Namespace != namespace && o.Namespace != "" {
			name = o.Namespace + "/" + o.Name
		}
		name = shown.Printable(name)
		i := slices.IndexFunc(out, func(f graph.Counted) bool { return f.Kind == o.Kind })
		if i < 0 {
			i, out = len(out), append(out, graph.Counted{Kind: o.Kind})
		}
		out[i].Count++
		out[i].Names = append(out[i].Names, name)
	}
	for i := range out {
		slices.Sort(out[i].Names)
		out[i].Names = out[i].Names[:min(3, len(out[i].Names))]
	}
	slices.SortFunc(out, func(a, b graph.Counted) int { return cmp.Compare(a.Kind.String(), b.Kind.String()) })
	return out
}

// instances are the objects of a kind, with all their names.
func (m *model) instances(kind schema.GroupResource) (objects []*mObject, ok bool) {
	for i := range m.objects {
		if m.objects[i].Kind == kind {
			objects = append(objects, &m.objects[i])
		}
	}
	k := m.kind(kind)
	return objects, m.discovered && (!k.served || k.level)
}

var uncounted = []string{"configmaps/kube-root-ca.crt", "serviceaccounts/default"}

// counted tells whether an object counts as what its namespace holds.
func (o *mObject) counted() bool {
	return !slices.Contains(uncounted, o.Kind.String()) && !slices.Contains(uncounted, o.Kind.String()+"/"+o.Name)
}

// filled are the objects in a namespace that count.
func (m *model) filled(namespace string) (objects []*mObject, ok bool) {
	for i := range m.objects {
		o := &m.objects[i]
		if o.Namespace == namespace && o.counted() {
			objects = append(objects, o)
		}
	}
	listing := slices.ContainsFunc(m.kinds, func(k mKind) bool {
		return k.served && k.Collected && k.Namespaced && (k.state == graph.Listing || k.state == graph.Slow)
	})
	return objects, m.discovered && !listing
}

// depends follows the references that mean an object, up.
func (m *model) depends(dependent, on types.UID) bool {
	up := map[types.UID]bool{dependent: true}
	for again := true; again; {
		again = false
		for _, o := range m.objects {
			for _, r := range o.Owners {
				if !up[o.UID] || m.meant(wordsOf(r, o.Namespace)) == nil {
					continue
				}
				if r.UID == on {
					return true
				}
				again = again || !up[r.UID]
				up[r.UID] = true
			}
		}
	}
	return false
}

// owner is what is known for certain about a uid: there, gone for a watch, or gone for a lookup of
// the same meaning.
func (m *model) owner(ref metav1.OwnerReference, namespace string) graph.Answer {
	if m.nodes(ref.UID) > 0 {
		return graph.Present
	}
	if slices.Contains(m.recentlyDeleted, ref.UID) {
		return graph.Absent
	}
	t := m.typeOf(wordsOf(ref, namespace))
	answer := graph.Unanswered
	if t.served && !t.ambiguous {
		m.alike(graph.Claim{Namespace: namespace, Name: ref.Name, UID: ref.UID, Resource: t.resource,
			Namespaced: t.namespaced}, func(c *mClaim) {
			if c.look == "absent" && !c.orphaned {
				answer = graph.Absent
			}
		})
	}
	return answer
}

// whichFactIsWrong compares what policies ask with what the model answers: a little after each
// event, about another object each time.
func (h *history) whichFactIsWrong(uids []types.UID) string {
	turn := h.events
	for _, kind := range []schema.GroupResource{mapKind, podKind, {Group: "example.com", Resource: "widgets"}} {
		got, ok := h.Graph.Instances(kind)
		objects, wantOK := h.model.instances(kind)
		if diff := countsDiffer([]graph.Counted{got}, inKinds(objects, ""), ok, wantOK); diff != "" {
			return fmt.Sprintf("instances of %s: %s", kind, diff)
		}
	}
	for _, ns := range []string{"x", "y"} {
		got, ok := h.Graph.Filled(ns)
		objects, wantOK := h.model.filled(ns)
		if diff := countsDiffer(got, inKinds(objects, ns), ok, wantOK); diff != "" {
			return fmt.Sprintf("what is in namespace %s: %s", ns, diff)
		}
	}
	if len(uids) == 0 {
		return ""
	}
	uid, other := uids[turn%len(uids)], uids[(turn/2)%len(uids)]
	kept := func(kind schema.GroupResource) bool {
		return turn%3 == 1 && kind == podKind || turn%3 == 2 && kind == mapKind
	}
	got, ok, _ := h.Graph.Cascade(graph.Search{UID: uid, Kept: kept}, 0)
	want, wantOK := h.model.cascade(uid, kept)
	if ok != wantOK || !gocmp.Equal(want, got) {
		return fmt.Sprintf("what would be deleted with %s, event %d (known %t, model %t) (-model +graph):\n%s",
			uid, turn, ok, wantOK, gocmp.Diff(want, got))
	}
	n := 0
	for _, f := range got {
		n += f.Count
	}
	if goes, goesOK := h.Graph.Goes(graph.Search{UID: uid, Kept: kept}); goesOK != ok ||
		len(goes) != n+1 && len(goes) > 0 || len(goes) > 0 && goes[0].UID != uid {
		return fmt.Sprintf("with %s go %v (known %t), and %d are counted", uid, goes, goesOK, n)
	}
	if got, want := h.Graph.Depends(uid, other, 1000), h.model.depends(uid, other); got != want {
		return fmt.Sprintf("%s depends on %s: %t, model %t", uid, other, got, want)
	}
	for _, o := range h.model.objects {
		for _, r := range o.Owners {
			if got, want := h.Graph.Owner(r, o.Namespace).Answer, h.model.owner(r, o.Namespace); o.UID == uid && got != want {
				return fmt.Sprintf("owner %s of %s: answer %d, model %d", r.UID, uid, got, want)
			}
		}
	}
	return ""
}

// countsDiffer: counts are exact, names are some of all.
func countsDiffer(got, all []graph.Counted, ok, wantOK bool) string {
	if ok != wantOK {
		return fmt.Sprintf("known: %t, model: %t", ok, wantOK)
	}
	got = slices.DeleteFunc(slices.Clone(got), func(f graph.Counted) bool { return f.Count == 0 })
	if len(got) != len(all) {
		return gocmp.Diff(all, got)
	}
	for i := range got {
		// So few objects are all neighbours: three names are found, and are all of them if there
		// are not more.
		wrong := got[i].Kind != all[i].Kind || got[i].Count != all[i].Count || len(got[i].Names) != len(all[i].Names)
		if wrong || got[i].Count <= 3 && !slices.Equal(got[i].Names, all[i].Names) {
			return gocmp.Diff(all, got)
		}
	}
	return ""
}
