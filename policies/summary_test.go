package policies

import (
	"testing"
)

func TestSummaryCountsWhatWouldAlsoBeDeletedAndNamesNothing(t *testing.T) {
	pods := []KindCount{{Resource: "pods", Count: 3, Names: []string{"secret-name"}}}
	many := append([]KindCount{{Resource: "jobs.batch", Count: 9}}, pods...)
	for _, r := range []string{"a", "b", "c", "d", "e"} {
		many = append(many, KindCount{Resource: r, Count: 2})
	}
	for name, c := range map[string]struct {
		policy string
		also   []KindCount
		all    bool
		change func(*Question)
		want   string
	}{
		"some":                         {"protection: {maxDependents: 9}", pods, true, nil, `if deployments.apps "web" in namespace "shop" is deleted, 3 objects are also deleted: 3 pods`},
		"one":                          {"protection: {maxDependents: 9}", []KindCount{{Resource: "pods", Count: 1}}, true, nil, `if deployments.apps "web" in namespace "shop" is deleted, 1 object is also deleted: 1 pods`},
		"more than is known":           {"protection: {maxDependents: 9}", pods, false, nil, `if deployments.apps "web" in namespace "shop" is deleted, at least 3 objects are also deleted: 3 pods`},
		"of many kinds":                {"protection: {maxDependents: 9}", many, true, nil, `if deployments.apps "web" in namespace "shop" is deleted, 22 objects are also deleted: 9 jobs.batch; 3 pods; 2 a; 2 b; 2 c; 2 d; 2 objects of 1 other kind`},
		"nothing":                      {"protection: {maxDependents: 9}", nil, true, nil, ""},
		"nothing is known":             {"protection: {maxDependents: 9}", pods, true, func(q *Question) { q.Facts = Facts{} }, ""},
		"dependents are kept":          {"protection: {maxDependents: 9}", pods, true, func(q *Question) { q.Options = map[string]any{"propagationPolicy": "Orphan"} }, ""},
		"a policy has them kept":       {"propagation: {default: Orphan}", pods, true, nil, ""},
		"it terminates already":        {"protection: {maxDependents: 9}", pods, true, func(q *Question) { *q = web(map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}) }, ""},
		"a subresource, and no delete": {"protection: {maxDependents: 9}", pods, true, func(q *Question) { q.Subresource = "status" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			set := Build(nil, sources(t, "f", delpol("p", c.policy)), Options{})
			q := web(nil)
			q.Facts = Facts{Dependents: func(s Search, _ int) (AlsoDeleted, bool) {
				return AlsoDeleted{Kinds: c.also}, c.all
			}}
			if c.change != nil {
				c.change(&q)
			}
			if have := set.Summary(q); have != c.want {
				t.Errorf("%q, want %q", have, c.want)
			}
		})
	}
}
