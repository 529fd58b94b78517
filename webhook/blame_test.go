package webhook

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/policies"
)

func failing(name, why string) []policies.PolicyError {
	return []policies.PolicyError{{Policy: policies.PolicyKey{Kind: "DeletionPolicy", Name: name}, Err: why}}
}

// Each policy is told of at once, then once a minute while it fails: not once for each request.
func TestPolicyThatFailsIsToldOfOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		var b *blamer
		b = newBlamer(func(policy map[string]any, message string) {
			_, why, _ := strings.Cut(message, ": ")
			mu.Lock()
			told = append(told, fmt.Sprint(policy["name"], " ", why))
			mu.Unlock()
			b.failed(failing("another", "from within")) // nothing is told under the lock
		}, func(key policies.PolicyKey) map[string]any {
			if key.Name == "another" || key.Name == "file" {
				return nil // it has no object that could have an Event
			}
			return map[string]any{"name": key.Name}
		})
		step := func(what string, want ...string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(want, told); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
			told = nil
		}
		b.failed(failing("a", "one"))
		b.failed(failing("b", "one"))
		b.failed(failing("file", "one"))
		step("the first is told at once", "a one", "b one")
		for i := range 100 {
			b.failed(failing("a", fmt.Sprint(i)))
		}
		step("others wait")
		elapse(blameEvery - time.Second)
		step("others wait for a minute")
		elapse(time.Second)
		b.failed(failing("a", "100"))
		step("the next is told then", "a 100")
		b.failed(failing("b", "two"))
		step("after a minute without any, one is told at once", "b two")
		elapse(10 * blameEvery)
		step("nothing is told of what does not fail")
	})
}

// An error may hold what whoever sends a review has put into an object.
func TestErrorsAreToldInOneBoundedLine(t *testing.T) {
	for in, want := range map[string]string{
		"no such key: tier":               "no such key: tier",
		"a\nb\x1b[2J":                     `a\nb\x1b[2J`,
		strings.Repeat("x", 1000):         strings.Repeat("x", mostBlame-3) + "…",
		strings.Repeat("\x00", mostBlame): strings.Repeat(`\x00`, mostBlame/4-1) + `\…`,
	} {
		if got := bounded(in); got != want {
			t.Errorf("%q is told as %q, want %q", in, got, want)
		}
	}
	for cut := range 8 {
		if got := bounded(strings.Repeat("x", cut) + strings.Repeat("é…", 200)); !utf8.ValidString(got) ||
			len(got) > mostBlame+len("…") || strings.Contains(got, "\uFFFD") {
			t.Errorf("a letter is cut in two: %q", got)
		}
	}
}

// A refusal for nothing but that a policy could not be judged is an error: whoever looks at the
// metric would take it for what the policy says. One that another policy has a reason for is a
// refusal.
func TestRefusalsOfPoliciesThatFailAreErrors(t *testing.T) {
	const label = `{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: label}, spec: {failurePolicy: Fail, match: {resources: [{apiGroups: [""], resources: [configmaps]}], matchConditions: [{name: c, expression: "oldObject.metadata.labels.tier == 'x'"}]}, protection: {confirmation: Required}}}`
	const guard = `{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: guard}, spec: {failurePolicy: Fail, match: {resources: [{apiGroups: [""], resources: [configmaps]}]}, protection: {confirmation: Required}}}`
	for _, c := range []struct{ policies, labels, result string }{
		{label, "{}", "error"},
		{label, "{tier: x}", "refused"},
		{label + "\n---\n" + guard, "{}", "refused"},
	} {
		withFixture(t, func(b *fixture) {
			b.policies(c.policies)
			reg := prometheus.NewRegistry()
			told := 0
			var err error
			tell := func(map[string]any, string) { told++ }
			if b.handler, err = New(Options{Config: b.api.Config(), Policies: b.state, Takes: takes, Facts: someFacts(),
				Tell: tell, Registry: reg}); err != nil {
				t.Fatal(err)
			}
			code, body := b.ask("delete-fail", `{operation: DELETE, resource: {version: v1, resource: configmaps}, kind: {version: v1, kind: ConfigMap}, namespace: shop, name: one, userInfo: {username: alice},
				oldObject: {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, uid: u1, labels: `+c.labels+`}}}`)
			if code != 200 || !strings.Contains(string(body), `"allowed":false`) {
				t.Fatalf("%d %s", code, body)
			}
			families, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, f := range families {
				for _, m := range f.GetMetric() {
					for _, l := range m.GetLabel() {
						if n := m.GetCounter().GetValue(); l.GetName() == "result" && n > 0 {
							got[l.GetValue()] += n
						}
					}
				}
			}
			if diff := cmp.Diff(map[string]float64{c.result: 1}, got); diff != "" {
				t.Errorf("labels %s: results (-want +got):\n%s", c.labels, diff)
			}
			if want := strings.Count(c.labels, "{}"); told != want {
				t.Errorf("labels %s: %d policies were told of, want %d", c.labels, told, want)
			}
		})
	}
}
