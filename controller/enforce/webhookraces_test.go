package enforce

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

// configured runs a test with who keeps the webhook configurations for a policy about ConfigMaps,
// until it has nothing to do.
func configured(t *testing.T, client *fake.Clientset, test func(t *testing.T, c *configurator)) {
	t.Helper()
	api := apitest.New()
	api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	api.Put("deletionpolicies", delpol("p", "configmaps", "propagation: {default: Orphan}"))
	inForce(t, api, func(t *testing.T, state *live.State) {
		c := &configurator{client: client.AdmissionregistrationV1(), namespaces: client.CoreV1().Namespaces(), policies: state, canary: untold(t, client), log: logr.Discard(), target: &WebhookTarget{
			Service: types.NamespacedName{Namespace: "weir-system", Name: "weir"}, Certificates: &bundle{pem: []byte("ca")}, Token: &tokener{next: "token"},
			Paths: map[policies.Webhook]string{policies.WebhookAddFinalizer: "/stamp", policies.WebhookDelete: "/delete"},
		}, kept: func() []schema.GroupResource { return []schema.GroupResource{fixture.ConfigMaps} }}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); c.run(ctx) }()
		synctest.Wait()
		test(t, c)
		cancel()
		<-done
	})
}

// names are those of the webhooks of both configurations.
func names(t *testing.T, client *fake.Clientset) (all []string) {
	t.Helper()
	m, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), policies.WebhookConfigurations, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	v, err2 := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), policies.WebhookConfigurations, metav1.GetOptions{})
	if err2 != nil && !apierrors.IsNotFound(err2) {
		t.Fatal(err2)
	}
	if err == nil {
		for _, w := range m.Webhooks {
			all = append(all, w.Name)
		}
	}
	if err2 == nil {
		for _, w := range v.Webhooks {
			all = append(all, w.Name)
		}
	}
	client.ClearActions()
	return all
}

// TestWebhookConfigurationsAreKeptWhateverOthersDoToThem: what a client has changed, or deleted, is
// as it was within moments, and what the configurations carry of others stays.
func TestWebhookConfigurationsAreKeptWhateverOthersDoToThem(t *testing.T) {
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "weir-system", UID: "home"}})
	configured(t, client, func(t *testing.T, _ *configurator) {
		want := names(t, client)
		if len(want) < 4 {
			t.Fatalf("there is %v", want)
		}
		api := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
		change := func(how func(*admissionregistrationv1.MutatingWebhookConfiguration)) func() error {
			return func() error {
				have, err := api.Get(t.Context(), policies.WebhookConfigurations, metav1.GetOptions{})
				if err != nil {
					return err
				}
				how(have)
				_, err = api.Update(t.Context(), have, metav1.UpdateOptions{})
				return err
			}
		}
		type configuration = admissionregistrationv1.MutatingWebhookConfiguration
		for what, edit := range map[string]func() error{
			"it deletes it":         func() error { return api.Delete(t.Context(), policies.WebhookConfigurations, metav1.DeleteOptions{}) },
			"it empties it":         change(func(c *configuration) { c.Webhooks = nil }),
			"it has another called": change(func(c *configuration) { c.Webhooks[0].ClientConfig.Service.Namespace = "theirs" }),
			"it has nobody trusted": change(func(c *configuration) { c.Webhooks[0].ClientConfig.CABundle = nil }),
			"it leaves out a namespace": change(func(c *configuration) {
				c.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"never": "there"}}
			}),
			"it adds a webhook": change(func(c *configuration) {
				c.Webhooks = append(c.Webhooks, admissionregistrationv1.MutatingWebhook{Name: "theirs.example.com"})
			}),
			"it owns it": change(func(c *configuration) {
				c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "theirs", UID: "gone"}} // by which it would be collected
			}),
		} {
			if err := edit(); err != nil {
				t.Fatal(err)
			}
			elapse(configureEvery + time.Second)
			if diff := cmp.Diff(want, names(t, client)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
			have, err := api.Get(t.Context(), policies.WebhookConfigurations, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w := have.Webhooks[0]
			if s := w.ClientConfig.Service; s == nil || s.Namespace != "weir-system" || string(w.ClientConfig.CABundle) != "ca" || len(w.NamespaceSelector.MatchLabels) > 0 {
				t.Errorf("%s: it is %+v", what, w)
			}
			if len(have.OwnerReferences) != 1 || have.OwnerReferences[0].UID != "home" {
				t.Errorf("%s: its owners are %v", what, have.OwnerReferences)
			}
		}
		if err := change(func(c *configuration) { c.Annotations = map[string]string{"theirs": "stays"} })(); err != nil {
			t.Fatal(err)
		}
		client.ClearActions()
		elapse(4 * configureEvery)
		if again := writes(client); len(again) > 0 {
			t.Errorf("an annotation of others is none of ours: %v", again)
		}
	})
}

// TestAWriteOfConfigurationsThatFailsIsTriedAgainSoon, and each on its own: what can be written of
// one is not held up by the other.
func TestAWriteOfConfigurationsThatFailsIsTriedAgainSoon(t *testing.T) {
	resource := schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}
	for name, c := range map[string]struct {
		verb string
		err  error
	}{
		"it may not be written":         {"create", apierrors.NewForbidden(resource, "weir", nil)},
		"another process has made it":   {"create", apierrors.NewAlreadyExists(resource, "weir")},
		"it may not be read":            {"get", apierrors.NewForbidden(resource, "weir", nil)},
		"the API server is in trouble":  {"get", apierrors.NewInternalError(errors.New("etcd is away"))},
		"the API server has too much":   {"create", apierrors.NewTooManyRequests("later", 1)},
		"the way there ends in between": {"create", errors.New("EOF")},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			refusals := 0
			client.PrependReactor(c.verb, resource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				refusals++
				return refusals <= 3, nil, c.err
			})
			configured(t, client, func(t *testing.T, _ *configurator) {
				elapse(2 * time.Second)
				got := names(t, client)
				if c.verb == "create" && !slices.ContainsFunc(got, func(name string) bool { return strings.HasPrefix(name, "delete") }) {
					t.Errorf("the other is not there either: %v", got)
				}
				elapse(5 * time.Second)
				if got := names(t, client); len(got) < 4 || refusals < 3 {
					t.Errorf("after %d tries there is %v", refusals, got)
				}
			})
		})
	}
}
