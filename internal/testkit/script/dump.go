package script

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Dump returns a whole graph as text, one line an object, in a stable order.
func Dump(g *graph.Graph) string {
	views, _ := g.Views(0, g.Stats().Objects)
	slices.SortFunc(views, func(a, b graph.View) int {
		return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.UID, b.UID))
	})
	var b strings.Builder
	for _, v := range views {
		b.WriteString(dumped(v))
		b.WriteByte('\n')
	}
	return b.String()
}

// UIDs returns the uid of every object.
func UIDs(g *graph.Graph) []types.UID {
	views, _ := g.Views(0, g.Stats().Objects)
	uids := make([]types.UID, 0, len(views))
	for _, v := range views {
		uids = append(uids, v.UID)
	}
	return uids
}

func dumped(v graph.View) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s uid=%s rv=%s", v.Ref, v.UID, v.ResourceVersion)
	switch {
	case v.Foreground:
		b.WriteString(" foreground")
	case v.Orphaning:
		b.WriteString(" orphaning")
	case v.Deleting:
		b.WriteString(" deleting")
	}
	if v.Ruled != "" {
		fmt.Fprintf(&b, " ruled=%s", v.Ruled)
	}
	if v.Accepted {
		b.WriteString(" accepted")
	}
	if len(v.Finalizers) > 0 {
		fmt.Fprintf(&b, " finalizers=%s", strings.Join(v.Finalizers, ","))
	}
	if v.Dependents > 0 {
		fmt.Fprintf(&b, " dependents=%d blocking=%d", v.Dependents, v.Blocking)
	}
	for _, o := range v.Owners {
		block := ""
		if o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion {
			block = " blocking"
		}
		fmt.Fprintf(&b, " <- %s %s uid=%s (%s%s)", o.Kind, o.Name, o.UID, o.Verdict, block)
	}
	return b.String()
}
