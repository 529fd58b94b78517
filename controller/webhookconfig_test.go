package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/apitest"
	"github.com/weir-dev/weir/policies/live"
)

// inForce runs a test with policies of an API server, on the clock of a bubble.
func inForce(t *testing.T, api *apitest.Server, test func(t *testing.T, state *live.State)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		state, err := live.New(live.Options{Config: api.Config()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		changed := state.Changed()
		go func() { done <- state.Run(ctx) }()
		<-changed
		test(t, state)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// delpol is a DeletionPolicy about a resource without a group, with the rest of its spec.
func delpol(name, resource, rest string) string {
	return fmt.Sprintf("{apiVersion: weir.dev/v1alpha1, kind: DeletionPolicy, metadata: {name: %s}, spec: {match: {resources: [{apiGroups: [''], resources: [%s]}]}, %s}}", name, resource, rest)
}

type bundle struct {
	pem []byte
	err error
}

func (b *bundle) Bundle() ([]byte, error)  { return b.pem, b.err }
func (b *bundle) Changed() <-chan struct{} { return nil }

// writes are what a fake client was asked to change, since the last time.
func writes(client *fake.Clientset) []string {
	var out []string
	for _, a := range client.Actions() {
		if a.GetVerb() != "get" {
			out = append(out, a.GetVerb()+" "+a.GetResource().Resource)
		}
	}
	client.ClearActions()
	slices.Sort(out)
	return out
}

func TestWebhookConfigurationsFollowThePolicies(t *testing.T) {
	api := apitest.New()
	api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	inForce(t, api, func(t *testing.T, state *live.State) {
		client := fake.NewClientset()
		trust := &bundle{err: errors.New("no certificate yet")}
		c := &configurator{client: client.AdmissionregistrationV1(), policies: state, log: logr.Discard(), target: &WebhookTarget{
			Service: types.NamespacedName{Namespace: "weir-system", Name: "weir"}, Certificates: trust,
			Paths: map[policies.Webhook]string{policies.WebhookStamp: "/stamp", policies.WebhookDelete: "/delete"},
		}}
		step := func(what, err string, want ...string) {
			t.Helper()
			text := ""
			if e := c.apply(t.Context()); e != nil {
				text = e.Error()
			}
			if text != err {
				t.Errorf("%s: error %q, want %q", what, text, err)
			}
			if diff := cmp.Diff(want, writes(client)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		policy := func(text string) {
			changed := state.Changed()
			api.Put("deletionpolicies", text)
			<-changed
		}
		step("without policies there is nothing, and no certificate is needed", "")
		policy(delpol("p", "configmaps", "propagation: {default: Orphan}"))
		step("without a bundle nothing is written", "the webhook's CA is not known: no certificate yet")
		trust.pem, trust.err = []byte("one"), nil
		step("then both are created", "", "create mutatingwebhookconfigurations", "create validatingwebhookconfigurations")
		step("and left alone", "")
		trust.pem = []byte("two")
		step("a new bundle", "", "update mutatingwebhookconfigurations", "update validatingwebhookconfigurations")
		trust.err = errors.New("away")
		step("a bundle that is lost changes nothing", "the webhook's CA is not known: away")
		trust.err = nil

		// Somebody changes one.
		have, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), WebhookConfigurations, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		have.Webhooks[0].TimeoutSeconds = new(int32(1))
		if _, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(t.Context(), have, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		writes(client)
		step("what somebody changed is put right", "", "update validatingwebhookconfigurations")
		have, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), WebhookConfigurations, metav1.GetOptions{})
		if err != nil || *have.Webhooks[0].TimeoutSeconds != webhookTimeout || string(have.Webhooks[0].ClientConfig.CABundle) != "two" {
			t.Errorf("it is %+v, %v", have, err)
		}
		client.ClearActions()

		policy(delpol("p", "configmaps", "protection: {confirmation: Required}"))
		step("a policy that stamps nothing", "", "delete mutatingwebhookconfigurations")
		changed := state.Changed()
		api.Remove("deletionpolicies.weir.dev/p")
		<-changed
		trust.err = errors.New("away")
		step("no policy any more", "", "delete validatingwebhookconfigurations")
		if _, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), WebhookConfigurations, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("it is still there: %v", err)
		}
	})
}

func TestEntriesOfAWebhookConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		target    WebhookTarget
		url, path string
		namespace string // that entries with Fail leave out
	}{
		"a Service":    {WebhookTarget{Service: types.NamespacedName{Namespace: "weir-system", Name: "weir"}}, "", "/delete", "weir-system"},
		"a URL":        {WebhookTarget{URL: "https://weir.test:9443"}, "https://weir.test:9443/delete", "", ""},
		"a URL with /": {WebhookTarget{URL: "https://weir.test:9443/"}, "https://weir.test:9443/delete", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.target.Paths = map[policies.Webhook]string{policies.WebhookDelete: "/delete", policies.WebhookOwners: "/delete", policies.WebhookStamp: "/delete"}
			conf := &configurator{target: &c.target}
			for _, failure := range []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Ignore, admissionregistrationv1.Fail} {
				rules := policies.WebhookRules{Name: "x", Webhook: policies.WebhookDelete, FailurePolicy: failure, Rules: []admissionregistrationv1.RuleWithOperations{{}}}
				v := conf.validating(rules, []byte("pem"))
				var out []string
				for _, e := range v.NamespaceSelector.MatchExpressions {
					out = append(out, fmt.Sprint(e.Key, " ", e.Operator, " ", e.Values))
				}
				want := []string(nil)
				if failure == admissionregistrationv1.Fail && c.namespace != "" {
					want = []string{"kubernetes.io/metadata.name NotIn [" + c.namespace + "]"}
				}
				if diff := cmp.Diff(want, out); diff != "" {
					t.Errorf("%s: namespaces (-want +got):\n%s", failure, diff)
				}
				url, path := "", ""
				if v.ClientConfig.URL != nil {
					url = *v.ClientConfig.URL
				}
				if s := v.ClientConfig.Service; s != nil {
					path = *s.Path
					if s.Namespace != "weir-system" || s.Name != "weir" || *s.Port != 443 {
						t.Errorf("the Service is %+v", s)
					}
				}
				if url != c.url || path != c.path || string(v.ClientConfig.CABundle) != "pem" {
					t.Errorf("the webhook is at %q, %q, want %q, %q", url, path, c.url, c.path)
				}
				if *v.FailurePolicy != failure || *v.Rules[0].Scope != admissionregistrationv1.AllScopes {
					t.Errorf("failurePolicy %s, scope %s", *v.FailurePolicy, *v.Rules[0].Scope)
				}
				if *v.SideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun {
					t.Errorf("delete, which arms, has side effects %s", *v.SideEffects)
				}
			}
			owners := conf.validating(policies.WebhookRules{Webhook: policies.WebhookOwners}, nil)
			stamp := conf.mutating(policies.WebhookRules{Webhook: policies.WebhookStamp, FailurePolicy: admissionregistrationv1.Fail}, nil)
			if *owners.SideEffects != admissionregistrationv1.SideEffectClassNone || *stamp.SideEffects != admissionregistrationv1.SideEffectClassNone {
				t.Errorf("side effects of owners %s, of stamp %s", *owners.SideEffects, *stamp.SideEffects)
			}
			if n := len(stamp.NamespaceSelector.MatchExpressions); (n == 1) != (c.namespace != "") {
				t.Errorf("a mutating entry with Fail leaves out %d namespaces", n)
			}
		})
	}
}

// A rule's own scope, which a drain order has, is kept.
func TestScopesOfRulesAreKept(t *testing.T) {
	namespaced := admissionregistrationv1.NamespacedScope
	got := scoped([]admissionregistrationv1.RuleWithOperations{{}, {Rule: admissionregistrationv1.Rule{Scope: &namespaced}}})
	if *got[0].Scope != admissionregistrationv1.AllScopes || *got[1].Scope != namespaced {
		t.Errorf("scopes %s and %s", *got[0].Scope, *got[1].Scope)
	}
}
