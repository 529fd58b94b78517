package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// manyPolicies are n, each with a selector and a condition: one in ten about deployments, and of those none refuses.
func manyPolicies(tb testing.TB, n int, all bool) *Set {
	tb.Helper()
	var b strings.Builder
	for i := range n {
		resource := "deployments"
		if !all && i%10 != 0 {
			resource = fmt.Sprintf("kind%d", i)
		}
		fmt.Fprintf(&b, "---\n{apiVersion: weir.dev/v1alpha1, kind: DeletionPolicy, metadata: {name: p%d}, spec: {priority: %d, match: {resources: [{apiGroups: [apps], resources: [%s]}], namespaceSelector: {matchLabels: {env: prod}}, conditions: [{name: c, expression: \"oldObject.metadata.name.startsWith('w') && request.userInfo.username != 'bob'\"}]}, propagation: {default: Foreground}, protection: {maxDependents: 10}}}\n", i, i, resource)
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
	q.NamespaceObject = map[string]any{"metadata": map[string]any{"name": "shop", "labels": map[string]any{"env": "prod"}}}
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
		for _, all := range []bool{false, true} {
			set := manyPolicies(b, n, all)
			name := fmt.Sprintf("%d policies, a tenth about the object", n)
			if all {
				name = fmt.Sprintf("%d policies, all about the object", n)
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				var took []time.Duration
				for b.Loop() {
					start := time.Now()
					d := set.Decide(q)
					took = append(took, time.Since(start))
					if !d.Allowed {
						b.Fatal(d.Message)
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			})
		}
	}
	b.Run("an unmatched object, 1000 policies", func(b *testing.B) {
		set := manyPolicies(b, 1000, true)
		q := q
		q.Resource.Resource = "daemonsets"
		for b.Loop() {
			set.Decide(q)
		}
	})
}
