package webhook

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/policies"
)

// A policy that cannot be judged lets pass under Ignore, and no user would see it in what is
// allowed.
func TestPoliciesThatFailAreCounted(t *testing.T) {
	withFixture(t, func(b *fixture) {
		b.policies(`{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: label}, spec: {match: {resources: [{apiGroups: [""], resources: [configmaps]}], matchConditions: [{name: c, expression: "oldObject.metadata.labels.tier == 'x'"}]}, protection: {confirmation: Required}}}`)
		reg := prometheus.NewRegistry()
		var err error
		if b.handler, err = New(Options{Config: b.api.Config(), Policies: b.state, Takes: takes, Facts: someFacts(),
			Registry: reg, Log: logr.Discard()}); err != nil {
			t.Fatal(err)
		}
		for _, labels := range []string{"{}", "{tier: y}", "{other: x}"} {
			if code, body := b.ask("delete", `{operation: DELETE, resource: {version: v1, resource: configmaps}, kind: {version: v1, kind: ConfigMap}, namespace: shop, name: one, userInfo: {username: alice},
				oldObject: {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, uid: u1, labels: `+labels+`}}}`); code != 200 || !strings.Contains(string(body), `"allowed":true`) {
				t.Fatalf("%d %s", code, body)
			}
		}
		requests, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range requests {
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if (l.GetName() == "policy" || l.GetName() == "result") && m.GetCounter().GetValue() > 0 {
						got[l.GetValue()] += m.GetCounter().GetValue()
					}
				}
			}
		}
		if diff := cmp.Diff(map[string]float64{"DeletionPolicy/label": 2, "error": 2, "allowed": 1}, got); diff != "" {
			t.Errorf("policies that failed, and results (-want +got):\n%s", diff)
		}
	})
}

// TestPoliciesHaveASeriesBeforeTheyFail: an alert sees no increase of what is there for the first
// time, be it a burst of failures.
func TestPoliciesHaveASeriesBeforeTheyFail(t *testing.T) {
	set := policies.Build(nil, []policies.Source{{Object: map[string]any{
		"apiVersion": "weir.dev/v1beta1", "kind": "DeletionPolicy", "metadata": map[string]any{"name": "p"},
		"spec": map[string]any{
			"match": map[string]any{"resources": []any{map[string]any{"apiGroups": []any{""},
				"resources": []any{"secrets"}}}},
			"protection": map[string]any{"confirmation": "Required"},
		},
	}}}, policies.Options{})
	reg := prometheus.NewRegistry()
	m, err := newMetrics(reg, func() *policies.Set { return set })
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"label:{name:\"policy\" value:\"DeletionPolicy/p\"} counter:{value:0",
		"label:{name:\"policy\" value:\"DeletionPolicy/p\"} counter:{value:1"} {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(strings.Fields(fmt.Sprint(families)), " "); !strings.Contains(all, want) {
			t.Errorf("the series are\n%s\nwant one with %s", all, want)
		}
		m.failed([]policies.PolicyError{{Policy: policies.PolicyKey{Kind: "DeletionPolicy", Name: "p"}}})
	}
}
