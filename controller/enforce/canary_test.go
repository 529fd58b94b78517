package enforce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-dev/weir/policies"
)

func labelsOf(s *metav1.LabelSelector) string { return metav1.FormatLabelSelector(s) }

// nest is a canary on the clock of a bubble, and an API server that asks about it, or does not.
type nest struct {
	*canary
	client *fake.Clientset

	mu     sync.Mutex
	answer func(number int64) error
	told   []string
}

func (n *nest) asks(answer func(number int64) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answer = answer
}

// news is what was told since the last time.
func (n *nest) news() []string {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	told := n.told
	n.told = nil
	return told
}

// known is what is known of policies in force.
func (n *nest) known(set *policies.Set) reach {
	now, _ := n.board.read()
	return now.asked.about(set)
}

func webhookDenies(number int64) error {
	return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(canaryDenied+policies.CanaryAnswer(number)))
}

func webhookFails(why string) func(int64) error {
	return func(int64) error { return apierrors.NewInternalError(errors.New(canaryFailed + why)) }
}

func letsPass(int64) error { return nil }

func inNest(t *testing.T, test func(t *testing.T, n *nest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &nest{client: fake.NewClientset(), answer: letsPass}
		n.client.PrependReactor("delete", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
			d := a.(clienttesting.DeleteActionImpl)
			if len(d.DeleteOptions.DryRun) != 1 {
				t.Error("a delete that is no dry run")
			}
			lease, err := n.client.Tracker().Get(a.GetResource(), a.GetNamespace(), d.Name)
			if err != nil {
				return true, nil, err
			}
			if lease.(metav1.Object).GetLabels()["weir.dev/canary"] != "true" {
				return true, nil, nil
			}
			n.mu.Lock()
			answer := n.answer
			n.mu.Unlock()
			return true, nil, answer(*d.DeleteOptions.GracePeriodSeconds)
		})
		tell := func(is metav1.ConditionStatus, reason, _ string) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.told = append(n.told, string(is)+" "+reason)
		}
		n.canary = newCanary("weir-system", n.client.CoordinationV1(), &board{}, tell, testEnforcementMetrics(t), logr.Discard())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); n.run(ctx) }()
		test(t, n)
		cancel()
		<-done
	})
}

func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// within is how soon an outage is known, and that it is over.
const within = 30 * time.Second

// What stands in the way is known in time, and that it is over, too.
func TestCanarySeesOutages(t *testing.T) {
	inNest(t, func(t *testing.T, n *nest) {
		set := &policies.Set{}
		step := func(what string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, n.news()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		elapse(time.Minute)
		step("before there is a configuration nothing is tried")
		if len(n.client.Actions()) > 0 {
			t.Errorf("requests %v", n.client.Actions())
		}
		n.configured(set, true)
		elapse(5 * time.Second)
		step("API servers may take some time to read a configuration")
		n.asks(webhookDenies)
		elapse(canaryRetry)
		step("they have", "True Reached")
		if r := n.known(set); r.status != metav1.ConditionTrue {
			t.Errorf("of these policies %+v is known", r)
		}
		if r := n.known(&policies.Set{}); r != (reach{}) {
			t.Errorf("of other policies %+v is known", r)
		}
		n.asks(webhookFails(`failed to call webhook: Post "https://h/t/canary": dial tcp 10.0.0.1:443: connect: connection refused`))
		elapse(within)
		step("nobody listens", "False NotReached")
		n.asks(webhookFails("failed to call webhook: tls: failed to verify certificate: x509: unknown authority"))
		elapse(within)
		step("another does, which is the same to users")
		n.asks(func(int64) error {
			<-time.After(webhookTimeout * time.Second)
			return webhookFails(`failed to call webhook: Post "https://h/t/canary": context deadline exceeded`)(0)
		})
		elapse(within)
		step("it is silent")
		n.asks(letsPass)
		elapse(within)
		step("the API server does not ask", "False NotAsked")
		n.asks(func(int64) error { return errors.New("no right to") })
		elapse(within)
		step("nobody knows", "Unknown NotTried")
		n.asks(webhookDenies)
		elapse(within)
		step("all is well", "True Reached")
		n.configured(set, false)
		elapse(within)
		step("and stays so")
	})
}

// The Lease is made, and its label put back, which brings it to Weir.
func TestCanaryKeepsItsObject(t *testing.T) {
	inNest(t, func(t *testing.T, n *nest) {
		n.asks(webhookDenies)
		n.configured(&policies.Set{}, true)
		elapse(time.Second)
		if diff := cmp.Diff([]string{"True Reached"}, n.news()); diff != "" {
			t.Error(diff)
		}
		lease, err := n.leases.Get(t.Context(), "weir-canary", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lease.Labels = nil
		if _, err := n.leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		n.client.ClearActions()
		elapse(2 * canaryEvery)
		var verbs []string
		for _, a := range n.client.Actions() {
			verbs = append(verbs, a.GetVerb())
		}
		if diff := cmp.Diff([]string{"delete", "patch", "delete", "delete"}, verbs); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string(nil), n.news()); diff != "" {
			t.Error(diff)
		}
	})
}

// Who leads is not ready before the webhook was reached, says why, and stays ready when it is not
// reached any more.
func TestTheFirstAnswerIsWaitedForAndNoOther(t *testing.T) {
	inNest(t, func(t *testing.T, n *nest) {
		e := &Enforcer{canary: n.canary}
		waits := func(what, reason string) {
			t.Helper()
			if err := e.Reached(); err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: it waits for %v, want that it names %s", what, err, reason)
			}
		}
		waits("before anything is written", "not asked weir's webhook yet")
		n.unconfigured(errors.New("the webhook's CA is not known"))
		waits("without a certificate", "the webhook's CA is not known")
		n.asks(webhookFails(`failed to call webhook: Post "https://h/t/canary": dial tcp 10.0.0.1:443: connect: connection refused`))
		n.configured(&policies.Set{}, true)
		elapse(time.Second)
		waits("nobody listens", "connection refused")
		n.asks(func(int64) error { return errors.New("no right to") })
		elapse(canaryAgain)
		waits("it cannot be tried", "no right to")
		n.asks(letsPass)
		elapse(2 * configurationsSettle)
		waits("the API server does not ask", "does not ask weir's webhook")
		n.asks(webhookDenies)
		elapse(canaryAgain)
		if err := e.Reached(); err != nil {
			t.Errorf("it was reached, and still waits: %v", err)
		}
		n.asks(webhookFails("failed to call webhook: EOF"))
		elapse(within)
		if now, _ := n.board.read(); e.Reached() != nil || now.asked.seen.reason != "NotReached" {
			t.Errorf("an outage (%s) has it wait again: %v", now.asked.seen.reason, e.Reached())
		}
	})
	if err := (&Enforcer{}).Reached(); err != nil {
		t.Errorf("it waits for %v where nobody tries", err)
	}
}

// What cannot be written is not in force; but for what was.
func TestCanaryTellsWhatCouldNotBeConfigured(t *testing.T) {
	inNest(t, func(t *testing.T, n *nest) {
		n.unconfigured(errors.New("the webhook's CA is not known"))
		if diff := cmp.Diff([]string{"False NotConfigured"}, n.news()); diff != "" {
			t.Error(diff)
		}
		n.asks(webhookDenies)
		n.configured(&policies.Set{}, true)
		elapse(time.Second)
		n.unconfigured(errors.New("etcd is away"))
		if diff := cmp.Diff([]string{"True Reached"}, n.news()); diff != "" {
			t.Error(diff)
		}
	})
}

// Policies that came when the configurations could be written no more are in force nowhere,
// although the API server goes on to ask about others.
func TestPoliciesThatCannotBeConfiguredSaySo(t *testing.T) {
	inNest(t, func(t *testing.T, n *nest) {
		first, second := &policies.Set{}, &policies.Set{}
		n.asks(webhookDenies)
		n.configured(first, true)
		elapse(configurationsSettle + time.Second)
		says := func(what string, set *policies.Set, want metav1.ConditionStatus, words string, news ...string) {
			t.Helper()
			r := n.known(set)
			if r.status != want || !strings.Contains(r.message, words) {
				t.Errorf("%s: %+v, want %s and %q", what, r, want, words)
			}
			if diff := cmp.Diff(news, n.news()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		refused := errors.New("the expression is too long")
		n.unconfigured(refused)
		says("it may be for a moment", second, "", "", "True Reached")
		elapse(configurationsSettle)
		n.unconfigured(refused)
		says("it is not", second, metav1.ConditionFalse, "the API server still asks by what policies said before: the expression is too long", "False NotConfigured")
		says("what was there is in doubt", first, metav1.ConditionFalse, "")
		elapse(2 * canaryEvery)
		n.unconfigured(refused)
		says("it is told once", second, metav1.ConditionFalse, "")
		if got := gauges(t, n.metrics.reachable); got != "NotConfigured=0" {
			t.Errorf("the metric says %s", got)
		}
		n.configured(second, true)
		elapse(configurationsSettle + canaryEvery)
		says("it could be written", second, metav1.ConditionTrue, "", "True Reached")
		if got := gauges(t, n.metrics.reachable); got != "Reached=1" {
			t.Errorf("the metric says %s", got)
		}
	})
}

// gauges are the values of a metric by its reason, sorted.
func gauges(t *testing.T, v *prometheus.GaugeVec) string {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(v)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			out = append(out, fmt.Sprintf("%s=%v", m.GetLabel()[0].GetValue(), m.GetGauge().GetValue()))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// helm test asks without a controller at hand: it makes nothing, and says what to look at.
func TestAskingWithoutLeading(t *testing.T) {
	inNest(t, func(t *testing.T, n *nest) {
		says := func(want metav1.ConditionStatus, words string) {
			t.Helper()
			if is, message := Asked(t.Context(), n.leases); is != want || !strings.Contains(message, words) {
				t.Errorf("%s: %s, want %s and %q", is, message, want, words)
			}
		}
		says(metav1.ConditionUnknown, "the controller makes it when it leads")
		if len(n.client.Actions()) != 1 {
			t.Errorf("requests %v, want one", n.client.Actions())
		}
		if err := n.send(t.Context(), 7); err != nil { // which makes it, and is let pass
			t.Fatal(err)
		}
		says(metav1.ConditionFalse, "there is a ValidatingWebhookConfiguration weir")
		n.asks(webhookFails("failed to call webhook: EOF"))
		says(metav1.ConditionFalse, "EOF")
		n.asks(func(int64) error { return webhookDenies(7) })
		says(metav1.ConditionFalse, "does not give weir's answer")
		n.asks(webhookDenies)
		says(metav1.ConditionTrue, "is answered")
	})
}
