package charts

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

// alertTests are unit tests as promtool reads them.
type alertTests struct {
	Every model.Duration `json:"evaluation_interval"`
	Tests []alertTest    `json:"tests"`
}

type alertTest struct {
	Name     string         `json:"name"`
	Interval model.Duration `json:"interval"`
	Series   []struct {
		Series string `json:"series"`
		Values string `json:"values"`
	} `json:"input_series"`
	Cases []alertCase `json:"alert_rule_test"`
}

type alertCase struct {
	At     model.Duration `json:"eval_time"`
	Alert  string         `json:"alertname"`
	Firing []firing       `json:"exp_alerts"`
}

// firing is an alert that fires.
type firing struct {
	Labels      map[string]string `json:"exp_labels"`
	Annotations map[string]string `json:"exp_annotations"`
}

// Every alert fires for what it is about, and for nothing near it: the rules are evaluated as
// Prometheus does.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	var tests alertTests
	readYAML(t, "testdata/alerts.yaml", &tests)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		t.Run(test.Name, func(t *testing.T) { test.run(t, time.Duration(tests.Every)) })
		for _, c := range test.Cases {
			if len(c.Firing) > 0 {
				fires[c.Alert] = true
			} else {
				quiet[c.Alert] = true
			}
		}
	}
	for _, a := range alerts(t) {
		if !fires[a.Alert] || !quiet[a.Alert] {
			t.Errorf("%s: there has to be a case in which it fires (%t), and one in which it does not (%t)", a.Alert, fires[a.Alert], quiet[a.Alert])
		}
	}
}

// Of each state that kinds can be in, it is written down whether it is an alert.
func TestEveryStateOfKindsIsAnAlertOrNot(t *testing.T) {
	var tests alertTests
	readYAML(t, "testdata/alerts.yaml", &tests)
	text := read(t, "testdata/alerts.yaml")
	_, doc, _ := strings.Cut(read(t, "../docs/alerts.md"), "## WeirKindsNotListed")
	doc, _, _ = strings.Cut(doc, "\n## ")
	names := regexp.MustCompile(`listStateNames = \[...\]string\{"unwatched", (.*)\}`).FindStringSubmatch(read(t, "../controller/graph/kind.go"))
	if len(names) == 0 {
		t.Fatal("the states of kinds are not where they were")
	}
	states := strings.Split(strings.ReplaceAll(names[1], `"`, ""), ", ")
	for _, state := range append(states, "behind") {
		if !strings.Contains(text, `weir_graph_kinds{state="`+state+`"`) {
			t.Errorf("no case is about kinds that are %s", state)
		}
		if state != "synced" && !strings.Contains(doc, "`"+state+"`") {
			t.Errorf("the runbook does not speak of kinds that are %s", state)
		}
	}
}

func (test alertTest) run(t *testing.T, every time.Duration) {
	load := "load " + test.Interval.String() + "\n"
	for _, s := range test.Series {
		load += s.Series + " " + s.Values + "\n"
	}
	suite, err := promqltest.NewLazyLoader(load, promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := suite.Close(); err != nil {
			t.Error(err)
		}
	}()
	suite.SubqueryInterval = every
	group := rulesOf(t, suite, every)
	cases := slices.SortedStableFunc(slices.Values(test.Cases), func(a, b alertCase) int { return int(a.At - b.At) })
	for now := time.Duration(0); len(cases) > 0; now += every {
		at := time.Unix(0, 0).UTC().Add(now)
		suite.WithSamplesTill(at, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			group.Eval(suite.Context(), at)
		})
		for ; len(cases) > 0 && time.Duration(cases[0].At) <= now; cases = cases[1:] {
			cases[0].check(t, group)
		}
	}
}

// rulesOf are the alerts of the chart, in a group that looks at what is loaded.
func rulesOf(t *testing.T, suite *promqltest.LazyLoader, every time.Duration) *rules.Group {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	var list []any
	readAny(t, "weir/files/alerts.yaml", &list)
	data, err := yaml.Marshal(object{"groups": []any{object{"name": "weir", "rules": list}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage()), Appendable: suite.Storage(), Context: suite.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: promslog.NewNopLogger(), Parser: parser.NewParser(parser.Options{}),
	})
	groups, errs := manager.LoadGroups(every, labels.EmptyLabels(), "", nil, false, file)
	if len(errs) > 0 || len(groups) != 1 {
		t.Fatalf("%d groups: %v", len(groups), errs)
	}
	for _, g := range groups {
		return g
	}
	return nil
}

func (c alertCase) check(t *testing.T, group *rules.Group) {
	t.Helper()
	var got []firing
	known := false
	for _, r := range group.Rules() {
		alert, ok := r.(*rules.AlertingRule)
		if !ok || alert.Name() != c.Alert {
			continue
		}
		known = true
		if err := alert.LastError(); err != nil {
			t.Errorf("%s: %v", c.Alert, err)
		}
		for _, a := range alert.ActiveAlerts() {
			if a.State == rules.StateFiring {
				got = append(got, firing{a.Labels.Map(), a.Annotations.Map()})
			}
		}
	}
	if !known {
		t.Errorf("there is no alert %s", c.Alert)
	}
	if len(got) != len(c.Firing) {
		t.Errorf("%s at %s: %d fire, want %d: %v", c.Alert, c.At, len(got), len(c.Firing), got)
		return
	}
	for i, want := range c.Firing {
		delete(got[i].Labels, labels.AlertName)
		if diff := cmp.Diff(want.Labels, got[i].Labels); diff != "" {
			t.Errorf("%s at %s (-want +got):\n%s", c.Alert, c.At, diff)
		}
		for name, text := range want.Annotations {
			if got[i].Annotations[name] != text {
				t.Errorf("%s at %s: the %s is %q, want %q", c.Alert, c.At, name, got[i].Annotations[name], text)
			}
		}
		for name, text := range got[i].Annotations {
			if strings.Contains(text, "error expanding template") || strings.Contains(text, "<no value>") {
				t.Errorf("%s at %s: the %s is %q", c.Alert, c.At, name, text)
			}
		}
	}
}
