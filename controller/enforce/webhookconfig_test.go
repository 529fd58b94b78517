package enforce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies"
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
	return fmt.Sprintf("{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: %s}, spec: {match: {resources: [{apiGroups: [''], resources: [%s]}]}, %s}}", name, resource, rest)
}

type bundle struct {
	pem []byte
	err error
}

func (b *bundle) Bundle() ([]byte, error)  { return b.pem, b.err }
func (b *bundle) Changed() <-chan struct{} { return nil }

// remembering is a source that goes on trusting what was written.
type remembering struct {
	bundle
	heard []string
}

func (r *remembering) Remember(pem []byte) error {
	r.heard = append(r.heard, string(pem))
	r.pem = append(r.pem, pem...)
	return nil
}

// TestWhatAnotherSourceHasWrittenIsTrustedOn: a process that waited to lead knows what was written
// when it started, and no more.
func TestWhatAnotherSourceHasWrittenIsTrustedOn(t *testing.T) {
	api := apitest.New()
	api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	api.Put("deletionpolicies", delpol("p", "configmaps", "propagation: {default: Orphan}"))
	inForce(t, api, func(t *testing.T, state *live.State) {
		written := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: managed(), Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "of.before", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte("theirs")}},
		}}
		client := fake.NewClientset(written)
		trust := &remembering{bundle: bundle{pem: []byte("own ")}}
		c := &configurator{client: client.AdmissionregistrationV1(), namespaces: client.CoreV1().Namespaces(), policies: state, canary: untold(t, client), log: logr.Discard(), target: &WebhookTarget{
			Service: types.NamespacedName{Namespace: "weir-system", Name: "weir"}, Certificates: trust, Token: &tokener{next: "t"},
			Paths: map[policies.Webhook]string{policies.WebhookAddFinalizer: "/stamp", policies.WebhookDelete: "/delete"},
		}}
		c.kept = func() []schema.GroupResource { return nil }
		for range 2 {
			if err := c.apply(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		have, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), policies.WebhookConfigurations, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(have.Webhooks[0].ClientConfig.CABundle); got != "own theirs" || len(trust.heard) != 1 {
			t.Errorf("the bundle is %q; it was told %q", got, trust.heard)
		}
	})
}

// untold is a canary that tells nobody.
func untold(t *testing.T, client *fake.Clientset) *canary {
	t.Helper()
	return newCanary("weir-system", client.CoordinationV1(), &board{}, func(metav1.ConditionStatus, string, string) {},
		testEnforcementMetrics(t), logr.Discard())
}

// tokener says which token is next.
type tokener struct {
	next string
	err  error
}

func (t *tokener) Next() (string, error)    { return t.next, t.err }
func (t *tokener) Changed() <-chan struct{} { return nil }

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
		trust, token := &bundle{err: errors.New("no certificate yet")}, &tokener{err: errors.New("no Secret yet")}
		c := &configurator{client: client.AdmissionregistrationV1(), namespaces: client.CoreV1().Namespaces(), policies: state, canary: untold(t, client), log: logr.Discard(), target: &WebhookTarget{
			Service: types.NamespacedName{Namespace: "weir-system", Name: "weir"}, Certificates: trust, Token: token,
			Paths: map[policies.Webhook]string{policies.WebhookAddFinalizer: "/stamp", policies.WebhookDelete: "/delete"},
		}}
		var served []schema.GroupResource
		c.kept = func() []schema.GroupResource { return served }
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
		step("a bundle is needed also without policies", "the webhook's CA is not known: no certificate yet")
		policy(delpol("p", "configmaps", "propagation: {default: Orphan}"))
		step("without a bundle nothing is written", "the webhook's CA is not known: no certificate yet")
		trust.pem, trust.err = []byte("one"), nil
		step("nor without a token", "the token of the webhook's paths is not known: no Secret yet")
		token.next, token.err = "t1", nil
		step("then both are created", "", "create mutatingwebhookconfigurations", "create validatingwebhookconfigurations")
		step("and left alone", "")
		trust.pem = []byte("two")
		step("a new bundle", "", "update mutatingwebhookconfigurations", "update validatingwebhookconfigurations")
		token.next = "t2"
		step("another token", "", "update mutatingwebhookconfigurations", "update validatingwebhookconfigurations")
		trust.err = errors.New("away")
		step("a bundle that is lost changes nothing", "the webhook's CA is not known: away")
		trust.err = nil

		// A client changes one.
		have, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), policies.WebhookConfigurations, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		have.Webhooks[0].TimeoutSeconds = new(int32(1))
		if _, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(t.Context(), have, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		writes(client)
		step("what somebody changed is put right", "", "update validatingwebhookconfigurations")
		have, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), policies.WebhookConfigurations, metav1.GetOptions{})
		if err != nil || *have.Webhooks[0].TimeoutSeconds != webhookTimeout || string(have.Webhooks[0].ClientConfig.CABundle) != "two" {
			t.Errorf("it is %+v, %v", have, err)
		}
		client.ClearActions()

		policy(delpol("p", "configmaps", "protection: {maxDependents: 3, inCascades: Ignore}"))
		step("a policy that adds no finalizer", "", "delete mutatingwebhookconfigurations", "update validatingwebhookconfigurations")
		policy("{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {match: {resources: [{apiGroups: ['*'], resources: ['*']}]}, protection: {maxDependents: 3, inCascades: Ignore}}}")
		step("a '*' before it is known what there is", "the kinds that the API server serves are not known")
		resources := func() string {
			t.Helper()
			have, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), policies.WebhookConfigurations, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			client.ClearActions()
			var out []string
			for _, r := range have.Webhooks[0].Rules {
				out = append(out, fmt.Sprint(r.APIGroups, r.Resources))
			}
			return strings.Join(out, " ")
		}
		served = []schema.GroupResource{{Resource: "configmaps"}, {Group: "apps", Resource: "deployments"}}
		step("and when it is", "", "update validatingwebhookconfigurations")
		if got := resources(); got != "[] [configmaps] [apps] [deployments]" && got != "[][configmaps] [apps][deployments]" {
			t.Errorf("rules %s", got)
		}
		served = append(served, schema.GroupResource{Group: "example.com", Resource: "gizmos"})
		step("another kind", "", "update validatingwebhookconfigurations")
		if got := resources(); !strings.Contains(got, "gizmos") {
			t.Errorf("rules %s", got)
		}
		changed := state.Changed()
		api.Remove("deletionpolicies.weir.dev/p")
		<-changed
		step("no policy any more", "", "update validatingwebhookconfigurations")
		if got, want := strings.Join(names(t, client), " "), "policies.weir.dev canary.weir.dev"; got != want {
			t.Errorf("there is %s, want %s", got, want)
		}
	})
}

func TestEntriesOfAWebhookConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		target    WebhookTarget
		url, path string
	}{
		"a Service":    {WebhookTarget{Service: types.NamespacedName{Namespace: "weir-system", Name: "weir"}}, "", "/token/delete-fail"},
		"a URL":        {WebhookTarget{URL: "https://weir.test:9443"}, "https://weir.test:9443/token/delete-fail", ""},
		"a URL with /": {WebhookTarget{URL: "https://weir.test:9443/"}, "https://weir.test:9443/token/delete-fail", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.target.Paths = map[policies.Webhook]string{policies.WebhookDelete: "/delete", policies.WebhookOwners: "/delete", policies.WebhookAddFinalizer: "/delete"}
			conf := &configurator{target: &c.target}
			for _, failure := range []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Ignore, admissionregistrationv1.Fail} {
				rules := policies.WebhookRules{Name: "x", Webhook: policies.WebhookDelete, Part: policies.PartFail, FailurePolicy: failure, Rules: []admissionregistrationv1.RuleWithOperations{{}}}
				v := conf.validating(rules, called{"token", []byte("pem")})
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
				if *v.FailurePolicy != failure {
					t.Errorf("failurePolicy %s", *v.FailurePolicy)
				}
				if *v.SideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun {
					t.Errorf("delete, which arms, has side effects %s", *v.SideEffects)
				}
			}
			owners := conf.validating(policies.WebhookRules{Webhook: policies.WebhookOwners}, called{})
			adds := conf.mutating(policies.WebhookRules{Webhook: policies.WebhookAddFinalizer, FailurePolicy: admissionregistrationv1.Fail}, called{}, 3)
			if *owners.SideEffects != admissionregistrationv1.SideEffectClassNone || *adds.SideEffects != admissionregistrationv1.SideEffectClassNone {
				t.Errorf("side effects of owners %s, of the finalizer %s", *owners.SideEffects, *adds.SideEffects)
			}
		})
	}
}

// All that the API server may wait for Weir at one request is less than it waits in all: a mutating
// webhook is asked twice where another's changes the object after it.
func TestAllTimeoutsTogetherAreLessThanTheAPIServers(t *testing.T) {
	for n := range 12 {
		var rules []policies.WebhookRules
		for i := range 12 {
			rules = append(rules, policies.WebhookRules{Mutating: i < n})
		}
		timeout := mutatingTimeout(rules)
		if together := 2*n*int(timeout) + webhookTimeout; n <= 11 && together >= 34 || timeout < 1 || timeout > 10 {
			t.Errorf("%d mutating webhooks wait for %d s each, which may be %d s in all", n, timeout, together)
		}
	}
	if one := mutatingTimeout([]policies.WebhookRules{{Mutating: true}, {}}); one != 10 {
		t.Errorf("a single one waits for %d s", one)
	}
}

func TestTokensAreReadFromThePaths(t *testing.T) {
	service := func(path *string) *admissionregistrationv1.WebhookClientConfig {
		return &admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Path: path}}
	}
	for want, clients := range map[string][]*admissionregistrationv1.WebhookClientConfig{
		"t": {service(new("/t/delete")), service(new("/t/delete-everywhere")), {URL: new("https://weir.test:9443/t/delete")}, {URL: new("https://weir.test/t/delete?x=y")}},
		"":  {service(new("/delete")), service(nil), {URL: new("https://weir.test/delete")}, {URL: new("https://weir.test")}, {URL: new("%zz")}, {}},
	} {
		for i, c := range clients {
			if got := tokenOf(c); got != want {
				t.Errorf("%q, %d: %q", want, i, got)
			}
		}
	}
}

// TestWebhookConfigurationsGoWithWeirsNamespace: without who serves them, requests would wait for
// no answer, and under Fail be refused for ever.
func TestWebhookConfigurationsGoWithWeirsNamespace(t *testing.T) {
	api := apitest.New()
	api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	api.Put("deletionpolicies", delpol("kept", "configmaps", "propagation: {default: Foreground}, protection: {confirmation: Required}"))
	inForce(t, api, func(t *testing.T, state *live.State) {
		home := func(uid types.UID) *corev1.Namespace {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "weir-system", UID: uid}}
		}
		client := fake.NewClientset(home("first"))
		c := &configurator{client: client.AdmissionregistrationV1(), namespaces: client.CoreV1().Namespaces(), policies: state, canary: untold(t, client), log: logr.Discard(), target: &WebhookTarget{
			Service: types.NamespacedName{Namespace: "weir-system", Name: "weir"}, Certificates: &bundle{pem: []byte("ca")}, Token: &tokener{next: "token"},
			Paths: map[policies.Webhook]string{policies.WebhookAddFinalizer: "/stamp", policies.WebhookDelete: "/delete"},
		}, kept: func() []schema.GroupResource { return []schema.GroupResource{fixture.ConfigMaps} }}
		want := func(what string, owners ...metav1.OwnerReference) {
			t.Helper()
			if err := c.apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			m, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "weir", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			v, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "weir", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, have := range [][]metav1.OwnerReference{m.OwnerReferences, v.OwnerReferences} {
				if diff := cmp.Diff(owners, have); diff != "" {
					t.Errorf("%s: owners (-want +have):\n%s", what, diff)
				}
			}
		}
		of := func(uid types.UID) metav1.OwnerReference {
			return metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "weir-system", UID: uid}
		}
		want("installed", of("first"))
		client.ClearActions()
		want("nothing has changed", of("first"))
		if again := writes(client); len(again) > 0 {
			t.Errorf("nothing has changed: %v", again)
		}

		spaces := client.CoreV1().Namespaces()
		if err := spaces.Delete(t.Context(), "weir-system", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		want("there is no such namespace")
		if _, err := spaces.Create(t.Context(), home("second"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		want("installed anew", of("second"))

		c.target.Service, c.target.URL = types.NamespacedName{}, "https://weir.test"
		want("outside of the cluster")
	})
}
