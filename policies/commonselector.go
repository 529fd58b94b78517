package policies

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// common returns a selector that selects everything that one of the selectors does, and as little
// else as one selector can; nil selects everything. A requirement that all have is kept. Of
// requirements that a label has one of some values, the values are joined.
func common(selectors []labels.Selector) *metav1.LabelSelector {
	var all []labels.Requirements
	for _, s := range selectors {
		if s == nil {
			return nil
		}
		requirements, _ := s.Requirements()
		all = append(all, requirements)
	}
	if len(all) == 0 {
		return nil
	}
	var out metav1.LabelSelector
	for _, r := range all[0] {
		if e, ok := required(r, all[1:]); ok && !slices.ContainsFunc(out.MatchExpressions,
			func(x metav1.LabelSelectorRequirement) bool {
				return x.Key == e.Key && x.Operator == e.Operator && slices.Equal(x.Values, e.Values)
			}) {
			out.MatchExpressions = append(out.MatchExpressions, e)
		}
	}
	if len(out.MatchExpressions) == 0 {
		return nil
	}
	slices.SortFunc(out.MatchExpressions, func(a, b metav1.LabelSelectorRequirement) int {
		return cmp.Or(compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator))
	})
	return &out
}

// required returns the requirement that holds for r and all others; false if one of them has none
// like it.
func required(r labels.Requirement, others []labels.Requirements) (metav1.LabelSelectorRequirement, bool) {
	values := sortedValues(r)
	for _, other := range others {
		i := slices.IndexFunc(other, func(o labels.Requirement) bool {
			return o.Key() == r.Key() && (oneOfValues(r) && oneOfValues(o) ||
				o.Operator() == r.Operator() && slices.Equal(sortedValues(o), sortedValues(r)))
		})
		if i < 0 {
			return metav1.LabelSelectorRequirement{}, false
		}
		values = append(values, sortedValues(other[i])...)
	}
	slices.Sort(values)
	e := metav1.LabelSelectorRequirement{Key: r.Key(), Values: slices.Compact(values)}
	switch {
	case oneOfValues(r):
		e.Operator = metav1.LabelSelectorOpIn
	case r.Operator() == selection.NotIn:
		e.Operator = metav1.LabelSelectorOpNotIn
	case r.Operator() == selection.Exists:
		e.Operator, e.Values = metav1.LabelSelectorOpExists, nil
	case r.Operator() == selection.DoesNotExist:
		e.Operator, e.Values = metav1.LabelSelectorOpDoesNotExist, nil
	default:
		return e, false // nothing that a LabelSelector can say
	}
	return e, true
}

// oneOfValues reports whether a requirement is that a label has one of some values.
func oneOfValues(r labels.Requirement) bool {
	switch r.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		return true
	}
	return false
}

func sortedValues(r labels.Requirement) []string {
	return slices.Sorted(slices.Values(r.ValuesUnsorted()))
}
