package policies

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/cel"
)

// index finds the policies about a resource without asking each.
type index struct {
	// exact holds, for every resource that some policy names, all policies about it.
	exact     map[schema.GroupResource][]*compiled
	wildcards []*compiled // policies with a '*', which must be asked
	all       []*compiled
	// shared are the expressions that several policies have.
	shared cel.Shared
}

func newIndex(all []*compiled) index {
	x := index{exact: map[schema.GroupResource][]*compiled{}, all: all, shared: sharedBy(all)}
	for _, c := range all {
		if wildcard(c.resources) {
			x.wildcards = append(x.wildcards, c)
		}
		for _, gr := range explicit(c.resources) {
			x.exact[gr] = nil
		}
	}
	for gr := range x.exact {
		x.exact[gr] = naming(all, gr)
	}
	return x
}

func naming(list []*compiled, gr schema.GroupResource) []*compiled {
	var out []*compiled
	for _, c := range list {
		if c.about(gr) {
			out = append(out, c)
		}
	}
	return out
}

// about returns the policies about a resource, in the order of the index. The caller must not
// change the slice.
func (x *index) about(gr schema.GroupResource) []*compiled {
	if l, ok := x.exact[gr]; ok {
		return l
	}
	return naming(x.wildcards, gr)
}
