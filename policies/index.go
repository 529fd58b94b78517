package policies

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/cel"
)

// index finds the policies about a resource without asking each.
type index struct {
	// exact holds, for every resource that some policy spells out, all policies about it.
	exact    map[schema.GroupResource]*list
	wildcard *list // whose rules have a '*': they have to be asked
	all      []*compiled
	// shared are the expressions that several policies have.
	shared cel.Shared
}

func newIndex(all []*compiled) index {
	x := index{exact: map[schema.GroupResource]*list{}, all: all, shared: sharedBy(all)}
	var wildcards []*compiled
	for _, c := range all {
		if wildcard(c.resources) {
			wildcards = append(wildcards, c)
		}
		for _, gr := range explicit(c.resources) {
			x.exact[gr] = nil
		}
	}
	x.wildcard = newList(wildcards)
	for gr := range x.exact {
		x.exact[gr] = newList(naming(all, gr))
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

// about are the policies about a resource, in the order of the index.
func (x *index) about(gr schema.GroupResource) []*compiled {
	if l, ok := x.exact[gr]; ok {
		return l.all.policies
	}
	return naming(x.wildcard.all.policies, gr)
}

// perhaps are the policies about a question's resource that may select its object, in the order of
// the index.
func (x *index) perhaps(q *Question) *ranked {
	gr := q.Resource.GroupResource()
	if l, ok := x.exact[gr]; ok {
		return l.perhaps(q)
	}
	return rank(naming(x.wildcard.perhaps(q).policies, gr))
}

// ranked are policies in their order, and which of them have to be looked at for what. It is not to
// be written to.
type ranked struct {
	policies                                 []*compiled
	broken, propagating, protecting, braking []int
}

func rank(list []*compiled) *ranked {
	r := &ranked{policies: list}
	for i, c := range list {
		if c.broken != "" {
			r.broken = append(r.broken, i)
		}
		if c.deletion != nil && c.deletion.propagation != nil {
			r.propagating = append(r.propagating, i)
		}
		if c.deletion != nil && c.deletion.protection != nil {
			r.protecting = append(r.protecting, i)
		}
		if c.deletion != nil && c.deletion.brake != nil {
			r.braking = append(r.braking, i)
		}
	}
	return r
}

// list is policies in order. Of those whose selectors ask for a label, only they are found that ask
// for what is there: a thousand teams may have a policy each, about their own namespaces.
type list struct {
	all *ranked
	// byLabel holds every policy under one thing that it asks for; asking for nothing, in others.
	byLabel map[labelKey]map[string]*places
	others  *places
}

// places are policies of a list, and where they are in it.
type places struct {
	*ranked
	at []int
}

func (l *list) places(at []int) *places {
	out := make([]*compiled, len(at))
	for i, p := range at {
		out[i] = l.all.policies[p]
	}
	return &places{rank(out), at}
}

// labelKey is a label of objects, or of their namespaces.
type labelKey struct {
	ofNamespace bool
	key         string
}

type label struct {
	labelKey
	value string
}

// asked is a label that a selector asks for, and the values that will do.
type asked struct {
	labelKey
	values []string
}

func newList(all []*compiled) *list {
	l := &list{all: rank(all), byLabel: map[labelKey]map[string]*places{}}
	byLabel := map[label][]int{}
	var others []int
	// What the fewest ask for tells policies apart best.
	popular := map[label]int{}
	for _, c := range all {
		for _, a := range c.asks() {
			for _, v := range a.values {
				popular[label{a.labelKey, v}]++
			}
		}
	}
	for i, c := range all {
		best, least := asked{}, 0
		for _, a := range c.asks() {
			n := 0
			for _, v := range a.values {
				n += popular[label{a.labelKey, v}]
			}
			if least == 0 || n < least {
				best, least = a, n
			}
		}
		if least == 0 {
			others = append(others, i)
			continue
		}
		for _, v := range best.values {
			byLabel[label{best.labelKey, v}] = append(byLabel[label{best.labelKey, v}], i)
		}
	}
	l.others = l.places(others)
	for k, at := range byLabel {
		if l.byLabel[k.labelKey] == nil {
			l.byLabel[k.labelKey] = map[string]*places{}
		}
		l.byLabel[k.labelKey][k.value] = l.places(at)
	}
	return l
}

// asks are the labels without which a policy selects nothing.
func (m *matcher) asks() []asked {
	return append(labelsOf(m.objects, false), labelsOf(m.namespaces, true)...)
}

func labelsOf(s labels.Selector, ofNamespace bool) []asked {
	if s == nil {
		return nil
	}
	requirements, _ := s.Requirements()
	var out []asked
	for _, r := range requirements {
		if oneOfValues(r) {
			out = append(out, asked{labelKey{ofNamespace, r.Key()}, slices.Compact(sortedValues(r))})
		}
	}
	return out
}

// perhaps are the policies that may select the object of a question, in order.
func (l *list) perhaps(q *Question) *ranked {
	found := make([]*places, 0, 4)
	if len(l.others.at) > 0 {
		found = append(found, l.others)
	}
	for k, byValue := range l.byLabel {
		sets := []labelSet{object(q.Object).labels(), object(q.OldObject).labels()}
		if k.ofNamespace {
			ns, selected, known := q.namespaceLabels()
			if !selected || !known {
				return l.all
			}
			sets = []labelSet{ns}
		}
		for _, s := range sets {
			if p := byValue[s.Get(k.key)]; p != nil && !slices.Contains(found, p) {
				found = append(found, p)
			}
		}
	}
	return l.merge(found)
}

// merge puts policies that were found in several places in order.
func (l *list) merge(found []*places) *ranked {
	switch len(found) {
	case 0:
		return &ranked{}
	case 1:
		return found[0].ranked
	}
	var at []int
	for _, p := range found {
		at = append(at, p.at...)
	}
	slices.Sort(at)
	return l.places(slices.Compact(at)).ranked
}
