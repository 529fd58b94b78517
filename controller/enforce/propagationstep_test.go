package enforce

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies"
)

// enforcementOf is what a policy makes of the deletion of a Deployment with finalizers. more is the
// rest of its spec.
func enforcementOf(t *testing.T, more string, finalizers []string) policies.Enforcement {
	t.Helper()
	text := ""
	if more != "" {
		if !strings.HasPrefix(more, "match:") {
			more = "match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, " + more
		}
		text = "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {" + more + "}}"
	}
	sources, problems := policies.Parse("f", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	list := make([]any, len(finalizers))
	for i, f := range finalizers {
		list[i] = f
	}
	object := map[string]any{"metadata": map[string]any{"name": "web", "namespace": "shop", "finalizers": list}}
	return policies.Build(nil, sources, policies.Options{}).Enforce(policies.Stored(
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, fixture.Deployments.WithVersion("v1"), object, nil))
}

// text is a step in one line.
func (s deletionStep) text() string {
	switch {
	case s.wait:
		return "wait: " + s.why
	case len(s.release) > 0:
		var names []string
		for _, d := range s.release {
			names = append(names, d.Name)
		}
		return fmt.Sprintf("release %v: %s", names, s.why)
	case s.propagation != "":
		return fmt.Sprintf("%s: %s", s.propagation, s.why)
	}
	return "let go: " + s.why
}

func TestNextStepOfADeletion(t *testing.T) {
	const keepsPods = "dependents: [{apiGroups: [''], resources: [pods], action: Orphan}]"
	dependents := []graph.View{
		{Ref: graph.Ref{Kind: fixture.Pods, Name: "pod", UID: types.UID("p")}},
		{Ref: graph.Ref{Kind: fixture.ReplicaSets, Name: "rs", UID: types.UID("r")}},
	}
	weirs, fg, orphan := "weir.dev/propagation", "foregroundDeletion", "orphan"
	held := "the deletion is held: "
	for name, c := range map[string]struct {
		policy     string
		finalizers []string
		dependents []graph.View
		unlisted   string
		given      bool
		want       string
	}{
		"no policy":                               {"", []string{weirs}, dependents, "", false, "let go: Background: no policy says otherwise"},
		"no policy, asked for Foreground":         {"", []string{weirs, fg}, dependents, "", false, "let go: Foreground is under way: no policy says otherwise"},
		"no policy, asked for Orphan":             {"", []string{orphan, weirs}, dependents, "", false, "let go: Orphan is under way: no policy says otherwise"},
		"Background":                              {"propagation: {default: Background, allowed: [Background]}", []string{weirs}, dependents, "x", false, `let go: Background: DeletionPolicy "p"`},
		"Foreground":                              {"propagation: {default: Foreground}", []string{weirs}, dependents, "x", false, `Foreground: DeletionPolicy "p"`},
		"Foreground, asked for":                   {"propagation: {default: Orphan}", []string{weirs, fg}, nil, "", false, `let go: Foreground is under way: DeletionPolicy "p"`},
		"Foreground, given":                       {"propagation: {default: Foreground}", []string{weirs}, nil, "", true, `let go: Foreground has been carried out: DeletionPolicy "p"`},
		"Foreground, given, and under way":        {"propagation: {default: Foreground}", []string{weirs, fg}, dependents, "", true, `let go: Foreground is under way: DeletionPolicy "p"`},
		"Orphan":                                  {"propagation: {default: Orphan}", []string{weirs}, dependents, "x", false, `Orphan: DeletionPolicy "p"`},
		"Orphan, given":                           {"propagation: {default: Orphan}", []string{weirs}, nil, "", true, `let go: Orphan has been carried out: DeletionPolicy "p"`},
		"Orphan, given, and not all is listed":    {"propagation: {default: Orphan}", []string{weirs}, nil, "pods", true, "wait: " + held + `dependents are to be kept (DeletionPolicy "p"), and not all kinds are listed yet: pods`},
		"Orphan under way, and not all is listed": {"propagation: {default: Orphan}", []string{orphan, weirs}, dependents, "pods", true, "wait: " + held + `dependents are to be kept (DeletionPolicy "p"), and not all kinds are listed yet: pods`},
		"Orphan, given, and taken off again":      {"propagation: {default: Orphan}", []string{weirs}, dependents, "", true, `Orphan: DeletionPolicy "p"`},
		"Orphan, and pods are kept anyway":        {"propagation: {default: Orphan, " + keepsPods + "}", []string{weirs}, dependents, "x", false, `Orphan: DeletionPolicy "p"`},
		"keeps pods, before all is listed":        {"propagation: {default: Foreground, " + keepsPods + "}", []string{weirs}, nil, "pods (listing)", false, "wait: " + held + `some dependents are to be kept (DeletionPolicy "p"), and not all kinds are listed yet: pods (listing)`},
		"keeps pods, and has one":                 {"propagation: {default: Foreground, " + keepsPods + "}", []string{weirs}, dependents, "", false, `release [pod]: 1 dependent is to be kept (DeletionPolicy "p")`},
		"keeps pods, and has one, though given":   {"propagation: {default: Foreground, " + keepsPods + "}", []string{weirs}, dependents, "", true, `release [pod]: 1 dependent is to be kept (DeletionPolicy "p")`},
		"keeps pods, and has none left":           {"propagation: {default: Foreground, " + keepsPods + "}", []string{weirs}, dependents[1:], "", false, `Foreground: DeletionPolicy "p"`},
		"keeps pods, Background, has one":         {"propagation: {default: Background, " + keepsPods + "}", []string{weirs}, dependents, "", false, `release [pod]: 1 dependent is to be kept (DeletionPolicy "p")`},
		"keeps pods, Background, has none left":   {"propagation: {default: Background, " + keepsPods + "}", []string{weirs}, dependents[1:], "", false, `let go: Background: DeletionPolicy "p"`},
		"deletes pods, and not all is listed":     {"propagation: {default: Background, dependents: [{apiGroups: [''], resources: [pods], action: Delete}]}", []string{weirs}, dependents, "x", false, `let go: Background: DeletionPolicy "p"`},
		"undecided":                               {`match: {resources: [{apiGroups: [apps], resources: [deployments]}], matchConditions: [{name: c, expression: "oldObject.spec.x"}]}, propagation: {default: Orphan}, failurePolicy: Fail`, []string{weirs}, dependents, "", true, "wait: " + held + `a policy with failurePolicy Fail may apply, and cannot be judged: DeletionPolicy "p": `},
		"cannot be judged, and nobody minds":      {`match: {resources: [{apiGroups: [apps], resources: [deployments]}], matchConditions: [{name: c, expression: "oldObject.spec.x"}]}, propagation: {default: Orphan}`, []string{weirs}, dependents, "", false, "let go: Background: no policy says otherwise"},
	} {
		t.Run(name, func(t *testing.T) {
			enforcement := enforcementOf(t, c.policy, c.finalizers)
			step := nextStep(deletionState{enforcement: enforcement, finalizers: c.finalizers, dependents: c.dependents, unlisted: c.unlisted, given: c.given, referred: len(c.dependents) > 0})
			got := step.text()
			if name == "undecided" && len(enforcement.Errors) == 1 {
				c.want += enforcement.Errors[0].Err
			}
			if got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
	brake := enforcementOf(t, "brake: {maxObjects: 5}, propagation: {default: Foreground}", []string{weirs})
	for want, s := range map[string]deletionState{
		"wait: " + held[:len(held)-2] + ` until a person decides (kubectl get held -o wide): 6 objects would also be deleted, and DeletionPolicy "p" allows 5`: {goes: 6, held: true},
		"wait: " + held + `DeletionPolicy "p" limits what is deleted with it, and not all kinds are listed yet: pods`:                                          {goes: 4, uncounted: true, unlisted: "pods"},
		`Foreground: DeletionPolicy "p"`: {goes: 6}, // a person has decided
	} {
		s.enforcement, s.finalizers = brake, []string{weirs}
		if got := nextStep(s).text(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	unrecorded := deletionState{enforcement: enforcementOf(t, "archive: {}, propagation: {default: Foreground, "+keepsPods+"}", []string{weirs}),
		finalizers: []string{weirs}, dependents: dependents, unrecorded: "it is being recorded"}
	if got, want := nextStep(unrecorded).text(), "wait: it is being recorded"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	// The built-in collector may not see yet what Weir has waited for: Weir releases it.
	waited := deletionState{enforcement: enforcementOf(t, "propagation: {default: Orphan}", []string{orphan, weirs}), finalizers: []string{orphan, weirs}, dependents: dependents, late: true, given: true, referred: true}
	if got, want := nextStep(waited).text(), `release [pod rs]: 2 dependents are to be kept (DeletionPolicy "p")`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	// The graph keeps what Weir's collector is to orphan until all kinds are listed.
	ours := deletionState{enforcement: enforcementOf(t, "propagation: {default: Orphan}", []string{orphan, weirs}), finalizers: []string{orphan, weirs}, unlisted: "pods", given: true, collects: true}
	if got, want := nextStep(ours).text(), `let go: Orphan is under way: DeletionPolicy "p"`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if dependents[0].Name != "pod" || dependents[1].Name != "rs" {
		t.Error("the dependents were written to")
	}
}
