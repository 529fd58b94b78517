package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedadmissionregistrationv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestPoliciesComeAndGo is about one cluster in which there is no policy but those of
// the step that runs.
func TestPoliciesComeAndGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cluster, _ := newPaired(t, replace, plane.Options{}, "--policy-dir", dir)
	for _, step := range []struct {
		name string
		f    func(*fixture)
	}{
		{"edited by hand", (*fixture).webhooksAreKept},
		{"calls that are not made", (*fixture).callsAreSpared},
		{"what nobody selects", (*fixture).noEntrySelects},
		{"policy files", func(w *fixture) { w.policyFiles(dir) }},
		{"broken policies", (*fixture).brokenPolicies},
		{"not ready", (*fixture).hookWithoutPolicies},
	} {
		t.Run(step.name, func(t *testing.T) {
			w := fixtureIn(t, cluster.cluster)
			w.hook = cluster.hook
			step.f(w)
		})
		if t.Failed() {
			return
		}
		cluster.awaitWebhooks()
	}
}

// canaryHook is the entry by which weir finds out whether it is asked, and policiesHook that for
// policies that are written. They are always there.
const (
	canaryHook   = "canary.weir.dev"
	policiesHook = "policies.weir.dev"
)

// webhooks are the entries of both configurations but these two, a line each, and whether
// both of these are there.
func (w *fixture) webhooks(ctx context.Context) (lines []string, there bool, err error) {
	line := func(name string, policy *admissionregistrationv1.FailurePolicyType, rules []admissionregistrationv1.RuleWithOperations, objects *metav1.LabelSelector) {
		text := name + " " + string(*policy)
		for _, r := range rules {
			ops := make([]string, len(r.Operations))
			for i, op := range r.Operations {
				ops[i] = string(op)
			}
			text += fmt.Sprintf(" %s of %s", strings.Join(ops, "+"), strings.Join(r.Resources, "+"))
		}
		if len(objects.MatchExpressions) > 0 {
			text += " where " + metav1.FormatLabelSelector(objects)
		}
		lines = append(lines, text)
	}
	admission := w.typed.AdmissionregistrationV1()
	m, err := admission.MutatingWebhookConfigurations().Get(ctx, "weir", metav1.GetOptions{})
	always := 0
	if err == nil {
		for _, e := range m.Webhooks {
			line(e.Name, e.FailurePolicy, e.Rules, e.ObjectSelector)
		}
	} else if !apierrors.IsNotFound(err) {
		return nil, false, err
	}
	v, err := admission.ValidatingWebhookConfigurations().Get(ctx, "weir", metav1.GetOptions{})
	if err == nil {
		for _, e := range v.Webhooks {
			if e.Name == canaryHook || e.Name == policiesHook {
				always++
				continue
			}
			line(e.Name, e.FailurePolicy, e.Rules, e.ObjectSelector)
		}
	} else if !apierrors.IsNotFound(err) {
		return nil, false, err
	}
	slices.Sort(lines)
	return lines, always == 2, nil
}

// awaitWebhooks waits until there are these entries, and no others but those that are always there.
func (w *fixture) awaitWebhooks(want ...string) {
	w.Helper()
	var have []string
	began := time.Now()
	w.until(fmt.Sprintf("the webhooks are %q", want), func(ctx context.Context) (bool, error) {
		lines, there, err := w.webhooks(ctx)
		if !slices.Equal(lines, have) {
			have = lines
			w.Logf("%s: webhooks %q", time.Since(began).Round(time.Millisecond), have)
		}
		return slices.Equal(have, want) && there, err
	})
}

// unguarded is a client of a user whom the guard of the webhook configurations does not judge.
func (w *fixture) unguarded() typedadmissionregistrationv1.AdmissionregistrationV1Interface {
	w.Helper()
	config := rest.CopyConfig(w.plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:kube-system:add-on", Groups: []string{"system:masters"}}
	client, err := typedadmissionregistrationv1.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	return client
}

func (w *fixture) unpolicy(kind, name string) {
	w.Helper()
	if err := w.dynamic.Resource(policyResources[kind]).Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

// What a user does to the configurations by hand does not last.
func (w *fixture) webhooksAreKept() {
	w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Foreground"))
	want := []string{"delete.weir.dev Ignore DELETE of configmaps", "stamp.weir.dev Ignore CREATE+UPDATE of configmaps+configmaps/status"}
	w.awaitWebhooks(want...)
	admission := w.unguarded()
	m, err := admission.MutatingWebhookConfigurations().Get(w.Context(), "weir", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	bundle := m.Webhooks[0].ClientConfig.CABundle
	m.Webhooks[0].FailurePolicy = new(admissionregistrationv1.Fail)
	m.Webhooks[0].Rules[0].Resources = []string{"*"}
	m.Webhooks[0].ClientConfig.CABundle = nil
	if _, err := admission.MutatingWebhookConfigurations().Update(w.Context(), m, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	if err := admission.ValidatingWebhookConfigurations().Delete(w.Context(), "weir", metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	w.awaitWebhooks(want...)
	if m, err = admission.MutatingWebhookConfigurations().Get(w.Context(), "weir", metav1.GetOptions{}); err != nil {
		w.Fatal(err)
	}
	if have := m.Webhooks[0].ClientConfig.CABundle; len(have) == 0 || string(have) != string(bundle) {
		w.Errorf("the CA bundle is\n%s\nwant\n%s", have, bundle)
	}
}

// calls is how many reviews the webhook has answered, but for those that are always asked.
func (w *fixture) calls() float64 {
	w.Helper()
	m, err := w.hook.Metrics(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return m.Sum("weir_webhook_requests_total") - m.Sum("weir_webhook_requests_total", "webhook", canaryHook) -
		m.Sum("weir_webhook_requests_total", "webhook", policiesHook)
}

// mustCall looks how many calls something costs.
func (w *fixture) mustCall(what string, want float64, f func()) {
	w.Helper()
	before := w.calls()
	f()
	if got := w.calls() - before; got != want {
		w.Errorf("%s cost %.0f calls, want %.0f", what, got, want)
	}
}

// Updates that change nothing that is judged, and the collectors, cost no call.
func (w *fixture) callsAreSpared() {
	w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Foreground"))
	w.policy("OwnerReferencePolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  blockOwnerDeletion: RequirePermission`)
	w.awaitFinalizerAdded("cm")
	w.make(`
		cm owner
		cm one owners=(owner)
		cm two owners=(owner)
	`)
	w.awaitFinalizers("one", finalizer)
	w.until("references are judged", func(context.Context) (bool, error) {
		before := w.calls()
		w.own("two")
		w.own("two", "owner!block")
		return w.calls()-before >= 2, nil
	})
	w.mustCall("200 updates of data", 0, func() {
		for i := range 200 {
			w.patch("one", fmt.Sprintf(`{"data":{"n":"%d"},"metadata":{"annotations":{"n":"%d"}}}`, i, i))
		}
	})
	w.awaitCached("one")
	w.mustCall("an update of labels", 1, func() { w.patch("one", `{"metadata":{"labels":{"a":"b"}}}`) })
	w.awaitCached("one")
	w.mustCall("a delete of what the finalizer holds", 0, func() { w.delete("one", background) })

	const collector = "system:serviceaccount:kube-system:generic-garbage-collector"
	w.kubeconfigOf(collector)
	as := *w
	as.dynamic = w.impersonating(collector)
	w.mustCall("what the collector does", 0, func() {
		as.patch("two", `{"metadata":{"labels":{"a":"b"},"ownerReferences":null}}`)
		as.delete("two", background)
	})
	w.awaitGone("one", "two")
}

// noEntrySelects: the API server does not ask about objects that no policy selects, until
// one does.
func (w *fixture) noEntrySelects() {
	for _, env := range []string{"prod", "stage"} {
		w.policyNamed("DeletionPolicy", env+"-"+w.namespace, `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    objectSelector: {matchLabels: {env: `+env+`}}
    HERE
  propagation: {default: Foreground}
  failurePolicy: Fail`)
	}
	const where = " where env in (prod,stage)"
	w.awaitWebhooks("fail.delete.weir.dev Fail DELETE of configmaps"+where, "stamp.weir.dev Ignore CREATE+UPDATE of configmaps+configmaps/status"+where)
	w.make(`
		cm dev
		cm moves
	`)
	for _, env := range []string{"prod", "stage"} {
		w.until("what moves to "+env+" is stamped", func(context.Context) (bool, error) {
			w.patch("moves", `{"metadata":{"labels":{"env":"dev"}}}`)
			w.patch("moves", `{"metadata":{"labels":{"env":"`+env+`"}}}`)
			return slices.Contains(w.get("moves").GetFinalizers(), finalizer), nil
		})
	}
	w.mustCall("what nobody selects", 0, func() {
		w.make(`cm more`)
		w.patch("dev", `{"metadata":{"labels":{"env":"dev"}}}`)
		w.delete("dev", background)
		w.delete("more", background)
	})
	w.awaitGone("dev", "more")
	w.awaitCached("moves")
	w.mustCall("a move", 1, func() { w.patch("moves", `{"metadata":{"labels":{"env":"prod"}}}`) })
	w.awaitCached("moves")
	w.mustCall("the way back", 1, func() { w.patch("moves", `{"metadata":{"labels":{"env":"dev"}}}`) })
	w.awaitFinalizers("moves")
}
