package policies

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestArchiveAtTheDelete: what is recorded carries the finalizer. Refused is, with Fail, only what
// nothing could hold until it is recorded.
func TestArchiveAtTheDelete(t *testing.T) {
	const beginsAtOnce = "may not be deleted with propagation policy Foreground: it is to be recorded first"
	undo, fails := delpol("p", "archive: {}"), delpol("p", "archive: {}, failurePolicy: Fail")
	for name, c := range map[string]struct {
		policies, asks, finalizers string
		collector                  Collector
		refused                    string
		enforced, arm              bool
	}{
		"Background":                           {policies: undo, enforced: true, arm: true},
		"it carries the finalizer":             {policies: fails, finalizers: weirs, enforced: true},
		"Foreground, where Weir collects":      {policies: fails, asks: "Foreground", collector: WeirCollects, enforced: true, arm: true},
		"Foreground, where another collects":   {policies: fails, asks: "Foreground", collector: OthersCollect, refused: beginsAtOnce},
		"Foreground, and it may be unrecorded": {policies: undo, asks: "Foreground", collector: OthersCollect, enforced: true, arm: true},
		"Orphan, where another collects":       {policies: fails, asks: "Orphan", collector: OthersCollect, enforced: true, arm: true},
		"on trial":                             {policies: delpol("p", "archive: {}, validationActions: [Warn]")},
	} {
		set := Build(nil, sources(t, "f", c.policies), Options{})
		q := web(map[string]any{"finalizers": anyList(strings.Fields(c.finalizers))})
		q.Collector = c.collector
		if c.asks != "" {
			q.Options = asking(c.asks)
		}
		d := set.Decide(q)
		if d.Allowed != (c.refused == "") || !strings.Contains(d.Message, c.refused) || d.Enforced != c.enforced || d.Arm != c.arm {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestWhatIsRecorded(t *testing.T) {
	text := delpol("a", "archive: {retentionSeconds: 60, exclude: [{apiGroups: [''], resources: [pods]}]}, priority: 7") +
		delpol("b", "archive: {}, failurePolicy: Fail")
	set := Build(nil, sources(t, "f", text), Options{})
	q := web(map[string]any{"finalizers": []any{weirs}})
	a := set.Enforce(q).Archive
	if a == nil || a.By != "a" || a.Retention != time.Minute || a.Fail {
		t.Fatalf("%+v", a)
	}
	var records []string
	for _, gr := range []schema.GroupResource{{Resource: "pods"}, {Resource: "secrets"}, {Resource: "events"}, {Group: "discovery.k8s.io", Resource: "endpointslices"}} {
		if a.Records(gr) {
			records = append(records, gr.String())
		}
	}
	if !slices.Equal(records, []string{"secrets"}) {
		t.Errorf("records %v", records)
	}
	alone := Build(nil, sources(t, "f", delpol("b", "archive: {}, failurePolicy: Fail")), Options{}).Enforce(q).Archive
	if alone == nil || !alone.Fail || alone.Retention != 7*24*time.Hour || !alone.Records(schema.GroupResource{Resource: "pods"}) {
		t.Errorf("%+v", alone)
	}
	m, errs := Build(nil, sources(t, "f", delpol("b", "archive: {}")), Options{}).FinalizersFor(storedAs(deployments))
	if strings.Join(m.Finalizers, " ") != weirs || len(errs) > 0 {
		t.Errorf("%+v, %v", m, errs)
	}
}

func TestArchivesThatCannotHoldAreWarnedOf(t *testing.T) {
	for resources, want := range map[string]string{
		"{apiGroups: [''], resources: [pods]}":                                        "it does not apply to pods",
		"{apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions]}": "the API server itself deletes the objects of one that is deleted",
		"{apiGroups: [apps], resources: [deployments]}":                               "",
	} {
		set := Build(nil, sources(t, "f", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {match: {resources: ["+resources+"]}, archive: {}}}"), Options{})
		var got []string
		for _, p := range set.Problems() {
			got = append(got, p.Message)
		}
		if text := strings.Join(got, "\n"); (text != "") != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", resources, text, want)
		}
	}
}
