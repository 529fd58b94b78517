package policies

import (
	"strings"
	"testing"
)

// TestBrakeIsToldAtTheDelete: three pods go with the Deployment. Whoever deletes it learns that it
// will be held; it is refused only where nothing could hold it.
func TestBrakeIsToldAtTheDelete(t *testing.T) {
	const beginsAtOnce = "may not be deleted with propagation policy Foreground: 3 objects would also be deleted"
	for name, c := range map[string]struct {
		policies         string
		asks, finalizers string
		collector        Collector
		refused, warned  string
		by               string
		enforced, arm    bool
	}{
		"no more than may go":                  {policies: delpol("p", "brake: {maxObjects: 3}"), by: "p", enforced: true, arm: true},
		"more than may go":                     {policies: delpol("p", "brake: {maxObjects: 2}"), warned: `is held until a person decides (kubectl get held requested.deployments.apps): 3 objects would also be deleted, and the policy allows 2 without a decision`, by: "p", enforced: true, arm: true},
		"it carries the finalizer":             {policies: delpol("p", "brake: {maxObjects: 2}"), finalizers: weirs, warned: "is held", by: "p", enforced: true},
		"the least limit":                      {policies: delpol("a", "brake: {maxObjects: 9}, priority: 7") + delpol("b", "brake: {maxObjects: 0}"), warned: `the policy allows none without a decision: 3 pods (DeletionPolicy "b")`, by: "b", enforced: true, arm: true},
		"dependents are kept":                  {policies: delpol("p", "brake: {maxObjects: 0}"), asks: "Orphan"},
		"Foreground, where Weir collects":      {policies: delpol("p", "brake: {maxObjects: 2}"), asks: "Foreground", collector: WeirCollects, warned: "is held", by: "p", enforced: true, arm: true},
		"Foreground, where another collects":   {policies: delpol("p", "brake: {maxObjects: 2}"), asks: "Foreground", collector: OthersCollect, refused: beginsAtOnce, by: "p"},
		"Foreground, and it is few":            {policies: delpol("p", "brake: {maxObjects: 3}"), asks: "Foreground", collector: OthersCollect, by: "p", enforced: true, arm: true},
		"a finalizer says Foreground":          {policies: delpol("p", "brake: {maxObjects: 2}"), finalizers: foreground, collector: OthersCollect, refused: beginsAtOnce, by: "p"},
		"with a propagation":                   {policies: delpol("p", "brake: {maxObjects: 2}, propagation: {default: Foreground}"), warned: "is held", by: "p", enforced: true, arm: true},
		"beside the propagation of another":    {policies: delpol("a", "propagation: {default: Foreground}") + delpol("b", "brake: {maxObjects: 2}"), warned: "is held", by: "b", enforced: true, arm: true},
		"on trial":                             {policies: delpol("p", "brake: {maxObjects: 2}, validationActions: [Warn]")},
		"on trial, behind one with less":       {policies: delpol("p", "brake: {maxObjects: 2}, validationActions: [Warn]") + delpol("q", "brake: {maxObjects: 1}"), warned: `(DeletionPolicy "q")`, by: "q", enforced: true, arm: true},
		"the object terminates, another asked": {policies: delpol("p", "brake: {maxObjects: 2}"), asks: "Foreground", finalizers: "x", collector: OthersCollect, refused: beginsAtOnce, by: "p"},
	} {
		set := Build(nil, sources(t, "f", c.policies), Options{})
		meta := map[string]any{"finalizers": anyList(strings.Fields(c.finalizers))}
		if strings.Contains(name, "terminates") {
			meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		}
		q := web(meta)
		q.Collector = c.collector
		if c.asks != "" {
			q.Options = asking(c.asks)
		}
		d := set.Decide(q)
		warnings := strings.Join(d.Warnings, "\n")
		if d.Allowed != (c.refused == "") || !strings.Contains(d.Message, c.refused) || d.BrakedBy != c.by || d.Enforced != c.enforced || d.Arm != c.arm {
			t.Errorf("%s: %+v", name, d)
		}
		if (warnings != "") != (c.warned != "") && c.refused == "" && !strings.Contains(warnings, "with propagation") || !strings.Contains(warnings, c.warned) {
			t.Errorf("%s: warns %q, want %q", name, warnings, c.warned)
		}
	}
}

// TestBrakeOfANamespaceThatGoes: all that is in it was asked for.
func TestBrakeOfANamespaceThatGoes(t *testing.T) {
	set := Build(nil, sources(t, "f", delpol("p", "brake: {maxObjects: 0}")), Options{})
	q := web(map[string]any{"finalizers": []any{weirs}})
	if e := set.Enforce(q); e.Limit == nil || *e.Limit != (Limit{0, "p"}) {
		t.Errorf("limit %+v, want that of p", e.Limit)
	}
	q.NamespaceObject = map[string]any{"metadata": map[string]any{"name": "shop", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
	if d := set.Decide(q); d.BrakedBy != "" || len(d.Warnings) > 0 || d.Arm {
		t.Errorf("%+v", d)
	}
	if e := set.Enforce(q); e.Limit != nil {
		t.Errorf("limit %+v, want none", e.Limit)
	}
}

func TestWhatABrakeHasCarried(t *testing.T) {
	for rest, want := range map[string]string{
		"brake: {maxObjects: 5}":                                       weirs,
		"brake: {maxObjects: 5}, validationActions: [Audit]":           "",
		"brake: {maxObjects: 5}, propagation: {default: Background}":   weirs + " " + foreground,
		"brake: {maxObjects: 5}, propagation: {allowed: [Foreground]}": weirs,
		"brake: {maxObjects: 5}, protection: {confirmation: Required}": weirs,
		"brake: {maxObjects: 5}, match: {resources: [{apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions]}]}": "",
	} {
		text := strings.Replace(delpol("p", rest), "{apiGroups: [apps], resources: [deployments]}", "{apiGroups: [batch], resources: [jobs]}", 1)
		gvr := jobs
		if spec, other, ok := strings.Cut(rest, ", match: "); ok {
			gvr = definitions.WithVersion("v1")
			text = "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {match: " + other + ", " + spec + "}}"
		}
		set := Build(nil, sources(t, "f", text), Options{})
		m, errs := set.FinalizersFor(storedAs(gvr))
		if got := strings.Join(m.Finalizers, " "); got != want || len(errs) > 0 {
			t.Errorf("%s: %s carry %q, want %q; %v", rest, gvr.Resource, got, want, errs)
		}
		if some, _ := set.AddsFinalizer(gvr.GroupResource()); some != (want != "") {
			t.Errorf("%s: %s may get the finalizer: %t", rest, gvr.Resource, some)
		}
	}
}

func TestBrakesThatCannotHoldAreWarnedOf(t *testing.T) {
	for spec, want := range map[string]string{
		"[{apiGroups: [''], resources: [pods]}]}, brake: {maxObjects: 1}":                                                                        "it does not apply to pods",
		"[{apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions]}]}, brake: {maxObjects: 1}":                                 "it does not apply to customresourcedefinitions.apiextensions.k8s.io",
		"[{apiGroups: [apps], resources: [deployments]}], matchConditions: [{name: c, expression: \"request.dryRun\"}]}, brake: {maxObjects: 5}": "a policy with a brake cannot use request",
	} {
		set := Build(nil, sources(t, "f", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {match: {resources: "+spec+"}}"), Options{})
		var got []string
		for _, p := range set.Problems() {
			got = append(got, p.Message)
		}
		if text := strings.Join(got, "\n"); (text != "") != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", spec, text, want)
		}
	}
}

// TestBrakeCountsWithoutWhatIsKept: dependents that the policy keeps are not counted.
func TestBrakeCountsWithoutWhatIsKept(t *testing.T) {
	set := Build(nil, sources(t, "f", delpol("p", "brake: {maxObjects: 0}, propagation: {dependents: [{apiGroups: [''], resources: [pods], action: Orphan}]}")), Options{})
	q := web(nil)
	q.Facts.Dependents = func(s Search, _ int) (AlsoDeleted, bool) {
		if s.Kept(pods) {
			return AlsoDeleted{}, true
		}
		return AlsoDeleted{Kinds: []KindCount{{Resource: "pods", Count: 1}}}, true
	}
	if d := set.Decide(q); len(d.Warnings) > 0 {
		t.Errorf("%q", d.Warnings)
	}
}
