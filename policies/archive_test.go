package policies

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// TestArchiveAtTheDelete: what is recorded carries the finalizer. Refused is, with Fail, only what
// nothing could hold until it is recorded.
func TestArchiveAtTheDelete(t *testing.T) {
	const beginsAtOnce = "may not be deleted with propagation policy Foreground: a policy records what is deleted first"
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
		"{apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions]}": "it does not apply to customresourcedefinitions.apiextensions.k8s.io",
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

// TestContentOfANamespaceThatIsRecordedIsHeld: what the built-in namespace controller deletes, until
// that is durable; with failurePolicy Fail however long that takes.
func TestContentOfANamespaceThatIsRecordedIsHeld(t *testing.T) {
	of := func(rest string) string {
		return "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {match: {resources: [{apiGroups: [''], resources: [namespaces]}]" + rest + "}}\n"
	}
	const (
		fail   = ", failurePolicy: Fail"
		edge   = "---\n{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: d}, spec: {waves: [{name: edge, resources: [{apiGroups: [''], resources: [pods]}]}, {name: rest, resources: [{apiGroups: [''], resources: [secrets]}]}]}}"
		broken = "matchConditions: [{name: c, expression: 'oldObject.spec.none == 1'}]"
	)
	deleted := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		policies, wave, namespace string
		after                     time.Duration
		held                      string // the wave that it is at; empty: it is not
	}{
		"at once":                          {of("}, archive: {}"), "", "shop", 0, "weir.dev/archive"},
		"recorded, and pods go":            {of("}, archive: {}"), "pods", "shop", time.Hour, ""},
		"nobody begins":                    {of("}, archive: {}"), "", "shop", 3 * time.Minute, ""},
		"nobody begins, and Fail":          {of("}, archive: {}" + fail), "", "shop", time.Hour, "weir.dev/archive"},
		"it is being recorded":             {of("}, archive: {}"), "weir.dev/archive", "shop", time.Hour, "weir.dev/archive"},
		"by the order of a DrainPolicy":    {of("}, archive: {}") + edge, "weir.dev/archive", "shop", time.Hour, "weir.dev/archive"},
		"recorded, by a DrainPolicy":       {of("}, archive: {}") + edge, "edge", "shop", time.Hour, ""},
		"another namespace":                {of(", namespaceSelector: {matchLabels: {x: 'yes'}}}, archive: {}"), "", "shop", 0, ""},
		"by its labels":                    {of(", objectSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}, archive: {}"), "", "shop", 0, "weir.dev/archive"},
		"Weir's own":                       {of("}, archive: {}" + fail), "", "weir-system", 0, ""},
		"on trial":                         {of("}, archive: {}, validationActions: [Warn]"), "", "shop", 0, ""},
		"it cannot be told, and Fail":      {of(", " + broken + "}, archive: {}" + fail), "", "shop", 0, "weir.dev/archive"},
		"it cannot be told, and is let go": {of(", " + broken + "}, archive: {}"), "", "shop", 0, ""},
		"no archive":                       {of("}, protection: {confirmation: Required, inCascades: Ignore}"), "", "shop", 0, ""},
	} {
		set := Build(nil, sources(t, "f", c.policies), Options{Namespace: "weir-system"})
		for _, p := range set.Problems() {
			t.Errorf("%s: %s", name, p)
		}
		q := Question{
			Operation: Delete, User: User{Name: namespaceController}, Namespace: c.namespace, Name: "web", Now: deleted.Add(c.after),
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, OldObject: map[string]any{"metadata": map[string]any{"name": "web"}},
			NamespaceObject: map[string]any{"metadata": map[string]any{"name": c.namespace, "deletionTimestamp": "2026-01-01T00:00:00Z",
				"labels":      map[string]any{"kubernetes.io/metadata.name": c.namespace},
				"annotations": map[string]any{v1beta1.DrainAnnotation: c.wave, v1beta1.DrainSinceAnnotation: "2026-01-01T00:00:00Z"}}},
		}
		if c.wave == "" {
			delete(q.NamespaceObject["metadata"].(map[string]any), "annotations")
		}
		d := set.Decide(q)
		if d.Allowed != (c.held == "") || !strings.Contains(d.Message, c.held) {
			t.Errorf("%s: allowed=%t %s", name, d.Allowed, d.Message)
		}
		asked := false
		for _, w := range set.Webhooks(keptKinds, nil) {
			if w.Webhook == WebhookDelete && strings.HasSuffix(w.Name, "drain.delete.weir.dev") && comes(t, w, &q) {
				asked = true
				if fails := strings.Contains(c.policies, fail); !strings.HasPrefix(w.Name, "system.") && fails != (w.FailurePolicy == "Fail") {
					t.Errorf("%s: %s has failurePolicy %s", name, w.Name, w.FailurePolicy)
				}
				at := q
				at.Part = w.Part
				if d := set.Decide(at); d.Allowed == (c.held != "") {
					t.Errorf("%s: at %s allowed=%t", name, w.Name, d.Allowed)
				}
			}
		}
		if c.held != "" && !asked {
			t.Errorf("%s: no webhook is asked", name)
		}
	}
}

// TestWhatIsToBeRecordedIsPreparedAtItsDelete: what carries no finalizer yet comes to Weir, which
// adds it. What does is held, and costs no call, unless another collector would begin at once.
func TestWhatIsToBeRecordedIsPreparedAtItsDelete(t *testing.T) {
	for name, c := range map[string]struct {
		rest, finalizers, asks string
		want                   bool
	}{
		"not prepared":              {"archive: {}", "", "", true},
		"prepared":                  {"archive: {}", weirs, "", false},
		"prepared, and Fail":        {"archive: {}, failurePolicy: Fail", weirs, "Background", false},
		"another collector begins":  {"archive: {}, failurePolicy: Fail", weirs, "Foreground", true},
		"as a client has it":        {"archive: {}, failurePolicy: Fail", weirs + " foregroundDeletion", "", true},
		"beside allowed":            {"archive: {}, propagation: {allowed: [Background]}", weirs, "", true},
		"beside another's default":  {"archive: {}, propagation: {default: Orphan}", weirs, "", false},
		"beside what asks a person": {"archive: {}, protection: {confirmation: Required}", weirs, "", true},
	} {
		set := Build(nil, sources(t, "f", delpol("p", c.rest)), Options{})
		q := web(map[string]any{"finalizers": anyList(strings.Fields(c.finalizers))})
		if c.finalizers == "" {
			q = web(map[string]any{})
		}
		if q.Options = nil; c.asks != "" {
			q.Options = asking(c.asks)
		}
		got := false
		for _, w := range set.Webhooks([]schema.GroupResource{q.Resource.GroupResource()}, nil) {
			got = got || strings.HasSuffix(w.Name, string(WebhookDelete)) && comes(t, w, &q)
		}
		if got != c.want {
			t.Errorf("%s: comes to Weir: %t", name, got)
		}
	}
}
