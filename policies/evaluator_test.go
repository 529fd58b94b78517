package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-dev/weir/policies/v1beta1"
)

const fails = `matchConditions: [{name: c, expression: "oldObject.nothing == 'x'"}]`

// A policy is heard, and fails, only where its answer makes a difference.
func TestWhoIsAsked(t *testing.T) {
	policy := func(name string, priority int, match, rest string) string {
		return fmt.Sprintf("---\n{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: %s}, spec: {failurePolicy: Fail, priority: %d, match: {resources: [{apiGroups: [apps], resources: [deployments]}], %s}, %s}}\n",
			name, priority, match, rest)
	}
	orphan, limit := "propagation: {default: Orphan}", "protection: {maxDependents: 3}"
	five := func(Search, int) (AlsoDeleted, bool) {
		return AlsoDeleted{Kinds: []KindCount{{Resource: "pods", Count: 5}}}, true
	}
	two := func(Search, int) (AlsoDeleted, bool) {
		return AlsoDeleted{Kinds: []KindCount{{Resource: "pods", Count: 2}}}, true
	}
	atLeastTwo := func(Search, int) (AlsoDeleted, bool) {
		return AlsoDeleted{Kinds: []KindCount{{Resource: "pods", Count: 2}}}, false
	}
	background := "propagation: {default: Background}"
	for name, c := range map[string]struct {
		policies    string
		alsoDeleted func(Search, int) (AlsoDeleted, bool)
		failed      []string
	}{
		"propagation behind one that holds":              {policy("a", 2, "", orphan) + policy("b", 1, fails, orphan), nil, nil},
		"propagation before one that holds":              {policy("a", 1, "", orphan) + policy("b", 2, fails, orphan), nil, []string{"b"}},
		"propagation, and none holds":                    {policy("a", 1, "objectSelector: {matchLabels: {no: body}}", orphan) + policy("b", 0, fails, orphan), nil, []string{"b"}},
		"a limit that is not reached":                    {policy("a", 1, fails, limit), two, nil},
		"a limit that is not reached, behind another":    {policy("a", 2, "", limit) + policy("b", 1, fails, limit), two, nil},
		"a limit that is not reached, before another":    {policy("a", 1, "", limit) + policy("b", 2, fails, limit), two, nil},
		"a limit that is reached":                        {policy("a", 1, fails, limit), five, []string{"a"}},
		"a limit that may be reached":                    {policy("a", 1, fails, limit), atLeastTwo, []string{"a"}},
		"a limit, of what is to be kept":                 {policy("a", 2, "", orphan) + policy("b", 1, fails, limit), five, nil},
		"a limit that is not reached, of the one's that": {policy("a", 1, fails, background+", "+limit), two, []string{"a"}}, // its propagation makes a difference
		"a confirmation":                                 {policy("a", 1, fails, "protection: {confirmation: Required}"), nil, []string{"a"}},
		"one that is broken":                             {policy("a", 2, "", orphan) + policy("b", 1, `matchConditions: [{name: c, expression: "(("}]`, orphan), nil, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Build(nil, sources(t, "f", c.policies), Options{})
			q := web(nil)
			q.Options = map[string]any{"propagationPolicy": "Background"}
			q.Facts.Dependents = c.alsoDeleted
			d := s.Decide(q)
			var failed []string
			for _, e := range d.Errors {
				failed = append(failed, e.Policy.Name)
			}
			if !slices.Equal(failed, c.failed) {
				t.Errorf("failed: %v, want %v", d.Errors, c.failed)
			}
			if refused := d.Audit[AuditRefused]; strings.Contains(refused, "cannot be judged") != (len(c.failed) > 0) {
				t.Errorf("refused: %q", refused)
			}
		})
	}
	// No policy that is not asked keeps back-fill from removing the finalizer.
	s := Build(nil, sources(t, "f", policy("a", 1, fails, limit)), Options{})
	if m, errs := s.FinalizersFor(Stored(deployments.GroupVersion().WithKind("Deployment"), deployments, web(map[string]any{"finalizers": []any{v1beta1.Finalizer}}).OldObject, nil)); m.By != "" || len(errs) > 0 {
		t.Errorf("%+v %v", m, errs)
	}
}
