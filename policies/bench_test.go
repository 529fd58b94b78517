package policies

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// crowds are ways in which there can be many policies, of which none refuses. Each is about
// deployments, has a selector and a condition, sets a propagation and a limit.
var crowds = []struct {
	name              string
	resource          func(i int) string
	selects, holdsFor string // with the policy's number
}{
	// One in ten is about the object, and they differ in nothing else.
	{"a tenth about the object", func(i int) string {
		if i%10 == 0 {
			return "deployments"
		}
		return fmt.Sprintf("kind%d", i)
	}, "env: prod", "oldObject.metadata.name.startsWith('w') && oldObject.metadata.name != 'bob'"},
	{"all about it", aboutIt, "env: prod", "oldObject.metadata.name.startsWith('w') && oldObject.metadata.name != 'bob'"},
	{"each with a condition of its own, all hold", aboutIt, "env: prod", "oldObject.metadata.name.startsWith('w') && oldObject.metadata.name != 'bob%d'"},
	{"each with a condition of its own, none holds", aboutIt, "env: prod", "oldObject.metadata.name.startsWith('w') && oldObject.metadata.name == 'bob%d'"},
	{"each about namespaces of its own", aboutIt, "team: 'team%d'", "oldObject.metadata.name.startsWith('w') && oldObject.metadata.name != 'bob%d'"},
}

func aboutIt(int) string { return "deployments" }

// crowd is n policies.
func crowd(tb testing.TB, n, which int) *Set {
	tb.Helper()
	c := crowds[which]
	numbered := func(s string, i int) string { return strings.ReplaceAll(s, "%d", strconv.Itoa(i)) }
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\n{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p%d}, spec: {priority: %d, match: {resources: [{apiGroups: [apps], resources: [%s]}], namespaceSelector: {matchLabels: {%s}}, matchConditions: [{name: c, expression: %q}]}, propagation: {default: Foreground}, protection: {maxDependents: 10}}}\n",
			i, i, c.resource(i), numbered(c.selects, i), numbered(c.holdsFor, i))
	}
	s := Build(nil, sources(tb, "f", b.String()), Options{})
	for _, p := range s.Problems() {
		if !p.Warning {
			tb.Fatal(p)
		}
	}
	return s
}

// prodDelete is the DELETE of an object as large as Deployments are.
func prodDelete() Question {
	q := web(map[string]any{"labels": map[string]any{"app": "web", "env": "prod"}, "annotations": map[string]any{"note": strings.Repeat("x", 2000)}})
	q.NamespaceObject = map[string]any{"metadata": map[string]any{"name": "shop", "labels": map[string]any{"env": "prod", "team": "team0"}}}
	q.Facts.Dependents = func(s Search, _ int) (AlsoDeleted, bool) {
		return AlsoDeleted{Kinds: []KindCount{{Resource: "replicasets.apps", Count: 1}, {Resource: "pods", Count: 3}}}, true
	}
	q.Options = map[string]any{"propagationPolicy": "Background"}
	return q
}

// allowEverything is what Decide is compared with.
//
//go:noinline
func allowEverything(Question) Decision { return Decision{Allowed: true} }

func BenchmarkDecide(b *testing.B) {
	q := prodDelete()
	b.Run("allow everything", func(b *testing.B) {
		for b.Loop() {
			allowEverything(q)
		}
	})
	for _, n := range []int{1, 100, 1000} {
		for which, c := range crowds {
			if n == 1 && c.name != "all about it" {
				continue
			}
			b.Run(fmt.Sprintf("%d policies, %s", n, c.name), func(b *testing.B) {
				set := crowd(b, n, which)
				b.ReportAllocs()
				var took []time.Duration
				for b.Loop() {
					start := time.Now()
					d := set.Decide(q)
					took = append(took, time.Since(start))
					if !d.Allowed || len(d.Errors) > 0 {
						b.Fatal(d.Message, d.Errors)
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)*50/100].Nanoseconds())/1000, "p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-µs")
			})
		}
	}
	b.Run("an unmatched object, 1000 policies", func(b *testing.B) {
		set := crowd(b, 1000, 1)
		q := q
		q.Resource.Resource = "daemonsets"
		for b.Loop() {
			set.Decide(q)
		}
	})
}
