package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedadmissionregistrationv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

// WebhookConfigurations is the name of both webhook configurations.
const WebhookConfigurations = "weir"

const (
	// webhookTimeout is how long the API server waits for Weir, in seconds: less than a client waits for the API server.
	webhookTimeout = 10
	// configureEvery finds out that somebody else has changed the configurations.
	configureEvery = 15 * time.Second
)

// WebhookTarget says where the API server finds the webhooks.
type WebhookTarget struct {
	// Service is in the cluster, URL (https://HOST:PORT) outside it. One of them is set.
	Service types.NamespacedName
	URL     string
	// Paths are below it.
	Paths map[policies.Webhook]string
	// Certificates say what the API server is to trust.
	Certificates Bundler
}

// Bundler is the CA bundle of a webhook's certificate.
type Bundler interface {
	Bundle() ([]byte, error)
	// Changed returns a channel that is closed at the next change.
	Changed() <-chan struct{}
}

func (t *WebhookTarget) client(w policies.Webhook, bundle []byte) admissionregistrationv1.WebhookClientConfig {
	path := t.Paths[w]
	if t.URL != "" {
		url := strings.TrimSuffix(t.URL, "/") + path
		return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: bundle}
	}
	return admissionregistrationv1.WebhookClientConfig{CABundle: bundle, Service: &admissionregistrationv1.ServiceReference{
		Namespace: t.Service.Namespace, Name: t.Service.Name, Path: &path, Port: new(int32(443)),
	}}
}

// configurator keeps the webhook configurations as the policies want them: only what a policy is about comes to Weir, and
// where no policy is about anything there is no webhook.
type configurator struct {
	client   typedadmissionregistrationv1.AdmissionregistrationV1Interface
	policies *live.State
	target   *WebhookTarget
	log      logr.Logger
}

func (c *configurator) run(ctx context.Context) {
	failing := false
	for {
		changed, renewed := c.policies.Changed(), c.target.Certificates.Changed()
		pause := configureEvery
		if err := c.apply(ctx); err != nil && ctx.Err() == nil {
			if !failing {
				c.log.Info("cannot bring the webhook configurations up to date, will try again", "err", err.Error())
			}
			failing, pause = true, time.Second
		} else {
			failing = false
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-renewed:
		case <-time.After(pause):
		}
	}
}

// apply makes both configurations what they should be.
func (c *configurator) apply(ctx context.Context) error {
	rules := c.policies.Set().Webhooks()
	var bundle []byte
	if len(rules) > 0 {
		var err error
		if bundle, err = c.target.Certificates.Bundle(); err != nil {
			return fmt.Errorf("the webhook's CA is not known: %w", err)
		}
	}
	var mutating []admissionregistrationv1.MutatingWebhook
	var validating []admissionregistrationv1.ValidatingWebhook
	for _, r := range rules {
		if r.Mutating {
			mutating = append(mutating, c.mutating(r, bundle))
		} else {
			validating = append(validating, c.validating(r, bundle))
		}
	}
	return errors.Join(
		keep(ctx, c.client.MutatingWebhookConfigurations(),
			&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: managed(), Webhooks: mutating},
			func(o *admissionregistrationv1.MutatingWebhookConfiguration) *[]admissionregistrationv1.MutatingWebhook {
				return &o.Webhooks
			}, c.log),
		keep(ctx, c.client.ValidatingWebhookConfigurations(),
			&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: managed(), Webhooks: validating},
			func(o *admissionregistrationv1.ValidatingWebhookConfiguration) *[]admissionregistrationv1.ValidatingWebhook {
				return &o.Webhooks
			}, c.log))
}

func managed() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: WebhookConfigurations, Labels: map[string]string{"app.kubernetes.io/managed-by": "weir"}}
}

// Everything is written out, defaults too, so that what the API server gives back compares equal.

func (c *configurator) mutating(r policies.WebhookRules, bundle []byte) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: r.Name, ClientConfig: c.target.client(r.Webhook, bundle), Rules: scoped(r.Rules), FailurePolicy: &r.FailurePolicy,
		MatchPolicy: new(admissionregistrationv1.Equivalent), NamespaceSelector: c.elsewhere(r), ObjectSelector: selector(r.ObjectSelector),
		SideEffects: new(admissionregistrationv1.SideEffectClassNone), TimeoutSeconds: new(int32(webhookTimeout)),
		AdmissionReviewVersions: []string{"v1"}, ReinvocationPolicy: new(admissionregistrationv1.IfNeededReinvocationPolicy),
		MatchConditions: r.MatchConditions,
	}
}

func (c *configurator) validating(r policies.WebhookRules, bundle []byte) admissionregistrationv1.ValidatingWebhook {
	effects := admissionregistrationv1.SideEffectClassNone
	if r.Webhook == policies.WebhookDelete {
		effects = admissionregistrationv1.SideEffectClassNoneOnDryRun // it arms
	}
	return admissionregistrationv1.ValidatingWebhook{
		Name: r.Name, ClientConfig: c.target.client(r.Webhook, bundle), Rules: scoped(r.Rules), FailurePolicy: &r.FailurePolicy,
		MatchPolicy: new(admissionregistrationv1.Equivalent), NamespaceSelector: c.elsewhere(r), ObjectSelector: selector(r.ObjectSelector),
		SideEffects: &effects, TimeoutSeconds: new(int32(webhookTimeout)), AdmissionReviewVersions: []string{"v1"},
		MatchConditions: r.MatchConditions,
	}
}

func scoped(rules []admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	for i := range rules {
		if rules[i].Scope == nil {
			rules[i].Scope = new(admissionregistrationv1.AllScopes)
		}
	}
	return rules
}

// elsewhere is the rules' namespaceSelector, and leaves Weir's own namespace out of webhooks that fail closed: a webhook
// that is down must not keep itself from coming up again.
func (c *configurator) elsewhere(r policies.WebhookRules) *metav1.LabelSelector {
	s := selector(r.NamespaceSelector)
	if r.FailurePolicy == admissionregistrationv1.Fail && c.target.Service.Namespace != "" {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{c.target.Service.Namespace},
		})
	}
	return s
}

func selector(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return &metav1.LabelSelector{}
	}
	return s
}

// configurations are the clients of both kinds.
type configurations[C metav1.Object] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (C, error)
	Create(ctx context.Context, c C, o metav1.CreateOptions) (C, error)
	Update(ctx context.Context, c C, o metav1.UpdateOptions) (C, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// keep makes one configuration hold the wanted webhooks, and no other, or not be there without any. fresh is a new one
// with them, and webhooks are those of one that is there.
func keep[C metav1.Object, W any](ctx context.Context, api configurations[C], fresh C, webhooks func(C) *[]W, log logr.Logger) error {
	want := *webhooks(fresh)
	have, err := api.Get(ctx, WebhookConfigurations, metav1.GetOptions{})
	did := ""
	switch {
	case err != nil && !apierrors.IsNotFound(err):
	case len(want) == 0 && err == nil:
		uid := have.GetUID()
		did, err = "deleted", api.Delete(ctx, WebhookConfigurations, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	case len(want) == 0:
		err = nil
	case err != nil:
		did = "created"
		_, err = api.Create(ctx, fresh, metav1.CreateOptions{})
	case !equality.Semantic.DeepEqual(*webhooks(have), want):
		*webhooks(have) = want
		did = "updated"
		_, err = api.Update(ctx, have, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("bring %T %s up to date: %w", fresh, WebhookConfigurations, err)
	}
	if did != "" {
		log.Info("webhook configuration "+did, "kind", fmt.Sprintf("%T", fresh), "webhooks", len(want))
	}
	return nil
}

// TrustedNow is what the API server is told to trust now: the CA bundles in the webhook configurations that are there, each
// once. They are the same but while one is being written after the other.
func TrustedNow(ctx context.Context, config *rest.Config) ([][]byte, error) {
	client, err := typedadmissionregistrationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for webhook configurations: %w", err)
	}
	var bundles [][]byte
	add := func(bundle []byte) {
		if !slices.ContainsFunc(bundles, func(b []byte) bool { return bytes.Equal(b, bundle) }) {
			bundles = append(bundles, bundle)
		}
	}
	mutating, err := client.MutatingWebhookConfigurations().Get(ctx, WebhookConfigurations, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read MutatingWebhookConfiguration %s: %w", WebhookConfigurations, err)
	}
	for _, w := range mutating.Webhooks {
		add(w.ClientConfig.CABundle)
	}
	validating, err := client.ValidatingWebhookConfigurations().Get(ctx, WebhookConfigurations, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read ValidatingWebhookConfiguration %s: %w", WebhookConfigurations, err)
	}
	for _, w := range validating.Webhooks {
		add(w.ClientConfig.CABundle)
	}
	return bundles, nil
}
