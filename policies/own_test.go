package policies

import (
	"strings"
	"testing"
)

// No process would carry out the deletion of who carries out deletions.
func TestPropagationDoesNotApplyInWeirsOwnNamespace(t *testing.T) {
	list := sources(t, "f", delpol("p", "propagation: {default: Foreground, allowed: [Foreground]}"))
	q := web(nil) // in namespace shop
	q.Options = map[string]any{"propagationPolicy": "Orphan"}
	if d := Build(nil, list, Options{}).Decide(q); d.Allowed {
		t.Error("elsewhere, what is not allowed is allowed")
	}
	set := Build(nil, list, Options{Namespace: q.Namespace})
	if d := set.Decide(q); !d.Allowed || d.Enforced {
		t.Errorf("in Weir's own namespace: %+v", d)
	}
	if m, _ := set.FinalizersFor(Stored(q.Kind, q.Resource, q.OldObject, nil)); m.By != "" {
		t.Errorf("the finalizer is wanted by %s", m.By)
	}
}

// What a refusal says is pasted into a shell; names of RBAC objects may be anything but a path.
func TestNamesInCommandsAreNoCommands(t *testing.T) {
	set := Build(nil, sources(t, "f", delpol("p", "propagation: {allowed: [Foreground]}")), Options{})
	for name, want := range map[string]string{
		"web":                "kubectl delete deployments.apps web -n shop --cascade",
		"system:web-1.x":     "kubectl delete deployments.apps system:web-1.x -n shop --cascade",
		"x; rm $(y)":         "kubectl delete 'deployments.apps/x; rm $(y)' -n shop --cascade",
		"--all":              "kubectl delete deployments.apps/--all -n shop --cascade",
		"it's `here`":        "kubectl delete 'deployments.apps/it'\\''s `here`' -n shop --cascade",
		"it's `here` \n too": `kubectl delete $'deployments.apps/it\047s ` + "`here`" + ` \n too' -n shop --cascade`,
	} {
		q := web(nil)
		q.Name = name
		q.Options = map[string]any{"propagationPolicy": "Orphan"}
		if d := set.Decide(q); d.Allowed || !strings.Contains(d.Message, want) {
			t.Errorf("%q: %q does not have %q", name, d.Message, want)
		}
	}
}

// TestRuleWithoutAPIGroupsNamesNothing: such a file is broken, and what is told of it is about
// resources in groups.
func TestRuleWithoutAPIGroupsNamesNothing(t *testing.T) {
	for groups, want := range map[string]int{"": 0, "apiGroups: [], ": 0, "apiGroups: [''], ": 1} {
		set := Build(nil, sources(t, "p.yaml", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, "+
			"spec: {match: {resources: [{"+groups+"resources: [secrets]}]}, protection: {confirmation: Required}}}"), Options{})
		if s := set.Statuses()[0]; s.Ready != (want > 0) || len(s.Names) != want {
			t.Errorf("%q: ready %t, names %v", groups, s.Ready, s.Names)
		}
	}
}
