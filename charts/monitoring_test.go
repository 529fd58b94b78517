package charts

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// expressions are what alerts and dashboard ask of Prometheus, by where.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, a := range alerts(t) {
		out["alert "+a.Alert] = a.Expr.String()
	}
	for _, m := range regexp.MustCompile(`"expr": "(.*?)",\n`).FindAllStringSubmatch(read(t, "weir/files/dashboard.json"), -1) {
		expr := strings.NewReplacer(`\"`, `"`, "$__rate_interval", "5m").Replace(m[1])
		out["dashboard "+expr] = expr
	}
	if len(out) < 25 {
		t.Fatalf("found %d expressions only", len(out))
	}
	return out
}

func alerts(t *testing.T) []monitoringv1.Rule {
	t.Helper()
	var out []monitoringv1.Rule
	if err := yaml.UnmarshalStrict([]byte(read(t, "weir/files/alerts.yaml")), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestExpressionsAreOfMetricsThatExist(t *testing.T) {
	exist := metricNames(t)
	used := map[string]bool{}
	for where, expr := range expressions(t) {
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
			v, ok := n.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			name := v.Name
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				name = strings.TrimSuffix(name, suffix)
			}
			used[name] = true
			if !slices.Contains(exist, name) {
				t.Errorf("%s asks for %s, which nothing counts", where, v.Name)
			}
			return nil
		})
	}
	for _, name := range exist {
		if !used[name] {
			t.Errorf("%s is in no alert and no dashboard", name)
		}
	}
}

// fromLibraries are metrics of controller-runtime.
var fromLibraries = []string{"leader_election_master_status"}

// metricNames are those that Weir's processes register, which make verify holds docs/metrics.md to.
func metricNames(t *testing.T) []string {
	t.Helper()
	out := slices.Clone(fromLibraries)
	for _, m := range regexp.MustCompile("(?m)^\\| `(weir_[a-z0-9_]+)`").FindAllStringSubmatch(read(t, "../docs/metrics.md"), -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestEveryAlertSaysWhatToDo(t *testing.T) {
	doc := read(t, "../docs/alerts.md")
	var inDoc, inRule []string
	for _, m := range regexp.MustCompile(`(?m)^## (Weir\w+)$`).FindAllStringSubmatch(doc, -1) {
		inDoc = append(inDoc, m[1])
	}
	rule := named(t, rendered(t, "--set", "metrics.prometheusRule.enabled=true"), "PrometheusRule", "weir")
	var typed monitoringv1.PrometheusRule
	if err := yaml.UnmarshalStrict([]byte(jsonOf(t, rule)), &typed); err != nil {
		t.Fatal(err)
	}
	for _, r := range typed.Spec.Groups[0].Rules {
		inRule = append(inRule, r.Alert)
		if !strings.HasSuffix(r.Annotations["runbook_url"], "docs/alerts.md#"+strings.ToLower(r.Alert)) {
			t.Errorf("%s: the runbook is said to be at %s", r.Alert, r.Annotations["runbook_url"])
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" || r.For == nil {
			t.Errorf("%s lacks a summary, a description, a severity or a time: %+v", r.Alert, r)
		}
	}
	if diff := cmp.Diff(inRule, inDoc); diff != "" {
		t.Errorf("alerts and runbooks, in their order (-alerts +docs/alerts.md):\n%s", diff)
	}
}

func TestAnAlertCanBeLeftOut(t *testing.T) {
	text, err := template(t, helm4, "--set", "metrics.prometheusRule.enabled=true,metrics.prometheusRule.disabled={WeirNoLeader}")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "alert: WeirNoLeader") || !strings.Contains(text, "alert: WeirControllerGone") {
		t.Errorf("WeirNoLeader is still there, or more is gone than it:\n%s", text)
	}
}

func TestServiceMonitorSelectsBothMetricsServices(t *testing.T) {
	t.Parallel()
	all := rendered(t, "--set", "metrics.serviceMonitor.enabled=true")
	var typed monitoringv1.ServiceMonitor
	if err := yaml.UnmarshalStrict([]byte(jsonOf(t, named(t, all, "ServiceMonitor", "weir"))), &typed); err != nil {
		t.Fatal(err)
	}
	selected := 0
	for _, o := range all {
		if o["kind"] != "Service" {
			continue
		}
		labels, _ := at(o, "metadata", "labels").(object)
		matches := true
		for k, v := range typed.Spec.Selector.MatchLabels {
			matches = matches && labels[k] == v
		}
		if matches {
			selected++
			port := at(o, "spec", "ports").([]any)[0]
			if at(port, "name") != typed.Spec.Endpoints[0].Port {
				t.Errorf("%s has no port %s", identity(o), typed.Spec.Endpoints[0].Port)
			}
		}
	}
	for name, values := range valueSets(t) {
		text, err := template(t, helm4, "--values", values, "--set", "metrics.enabled=true,metrics.serviceMonitor.enabled=true")
		if name == "shadow" { // it has no certificate that a CA has signed
			if err == nil || !strings.Contains(err.Error(), "Prometheus would send its token to anyone") {
				t.Errorf("shadow: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.ToLower(text), "insecureskipverify") {
			t.Errorf("%s: somebody does not verify whom he talks to", name)
		}
		monitor := named(t, manifests(t, text), "ServiceMonitor", "weir")
		tls := at(at(monitor, "spec", "endpoints").([]any)[0], "tlsConfig")
		if at(tls, "serverName") != "weir-webhook.weir-system.svc" || at(tls, "ca", "secret", "key") != "ca.crt" || at(tls, "ca", "secret", "name") == "" {
			t.Errorf("%s: whom Prometheus trusts: %v", name, tls)
		}
	}
	if selected != 2 {
		t.Errorf("%d services are scraped, want those of the controller and the webhook", selected)
	}
}
