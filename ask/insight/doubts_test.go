package insight

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// TestAnOwnerOfWhichNothingIsKnownLeavesThePlanIncomplete: where an object is kept because of it,
// and not where that is so anyway.
func TestAnOwnerOfWhichNothingIsKnownLeavesThePlanIncomplete(t *testing.T) {
	widgets := graph.Resource{Group: "x.io", Resource: "widgets", Kind: "Widget", Version: "v1", Versions: []string{"v1"}, Namespaced: true} // which no list tells of
	widget := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "x.io/v1", Kind: "Widget", Name: name, UID: types.UID("uid-" + name)}
	}
	boss, other := reference(configMaps, "boss"), reference(configMaps, "other")
	for name, c := range map[string]struct {
		owners  [][]metav1.OwnerReference // of one object each
		written string                    // when the objects were; empty: before all lists
		outcome Outcome                   // of the first
		unread  string
	}{
		"it is owned by what goes":            {[][]metav1.OwnerReference{{boss}}, "", Deleted, ""},
		"and by what no list tells of":        {[][]metav1.OwnerReference{{boss, widget("w")}}, "", Unknown, "an owner of configmaps/x/a: the object is kept for it"},
		"two by the same":                     {[][]metav1.OwnerReference{{boss, widget("w")}, {boss, widget("w")}, {boss, widget("v")}}, "", Unknown, "an owner of configmaps/x/a: the object is kept for it"},
		"one that another keeps anyway":       {[][]metav1.OwnerReference{{boss, widget("w"), other}}, "", Released, ""},
		"but not the second":                  {[][]metav1.OwnerReference{{boss, widget("w"), other}, {boss, widget("w")}}, "", Released, "an owner of configmaps/x/b: the object is kept for it"},
		"one that does not hang together":     {[][]metav1.OwnerReference{{boss}, {widget("w")}}, "", Deleted, ""},
		"and by a kind that is not served":    {[][]metav1.OwnerReference{{boss, {APIVersion: "gone.io/v1", Kind: "Gone", Name: "g", UID: "uid-g"}}}, "", Unknown, ""},
		"and by what is gone":                 {[][]metav1.OwnerReference{{boss, reference(secrets, "s")}}, "", Deleted, ""},
		"and by what may have come meanwhile": {[][]metav1.OwnerReference{{boss, reference(secrets, "s")}}, "9", Unknown, "an owner of configmaps/x/a: the object is kept for it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld("", []graph.Resource{configMaps, secrets, widgets})
			all := []metav1.PartialObjectMetadata{object(configMaps, "x", "boss"), object(configMaps, "x", "other")}
			for i, owners := range c.owners {
				o := object(configMaps, "x", string(rune('a'+i)), owners...)
				if c.written != "" {
					o.ResourceVersion = c.written
				}
				all = append(all, o)
			}
			w.List(secrets.GroupResource(), "5", nil)
			w.List(configMaps.GroupResource(), "9", all)
			clone := w.Clone()
			if clone.Orphans(); len(clone.Unread()) > 0 {
				t.Errorf("orphans, which say it of each object, are incomplete: %+v", clone.Unread())
			}
			p := w.Plan(Deletion{Roots: []types.UID{"uid-boss"}, Propagation: metav1.DeletePropagationBackground})
			got := ""
			for _, u := range p.Unread {
				got += u.Kind + ": " + u.Reason
			}
			if is := byUID(p.Items)["uid-a"]; is == nil || is.Outcome != c.outcome || got != c.unread || p.Incomplete() != (c.unread != "") {
				t.Errorf("unread: %q, want %q; %s", got, c.unread, drawnPlan(t, p))
			}
			if slices.ContainsFunc(p.Unread, func(u Unread) bool { return !u.Besides }) {
				t.Errorf("a plan without objects of a kind is told of: %+v", p.Unread)
			}
		})
	}
}
