package enforce

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	typedadmissionregistrationv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

const (
	// webhookTimeout is how long the API server waits for a validating webhook of Weir, in seconds. It
	// calls them all at the same time.
	webhookTimeout = 10
	// serverTimeout is how many seconds the API server has for a request with all its webhooks (RB
	// 6.18), less two for the rest of its work. After that the client is told that the request timed
	// out, whatever a failurePolicy says.
	serverTimeout = 34 - 2
	// configureEvery is how soon it is seen that another client has changed the configurations.
	configureEvery = 15 * time.Second
)

// WebhookTarget says where the API server finds the webhooks.
type WebhookTarget struct {
	// Service is in the cluster, URL (https://HOST:PORT) outside it. One of them is set.
	Service types.NamespacedName
	URL     string
	// Paths come after a token that only the API server is told.
	Paths map[policies.Webhook]string
	Token Tokener
	// Certificates is the CA bundle that the API server is to trust.
	Certificates Bundler
	// CanaryNamespace is the namespace of the Lease by which Weir finds out whether the API server
	// calls its webhook.
	CanaryNamespace string
	// InProcessOff: no ValidatingAdmissionPolicies are written.
	InProcessOff bool
	// InProcessOverlap is for how long both the API server and the webhook judge.
	InProcessOverlap time.Duration
}

// Tokener provides the token with which the paths begin.
type Tokener interface {
	// Next returns the token to write.
	Next() (string, error)
	// Changed returns a channel that is closed at the next change.
	Changed() <-chan struct{}
}

// Bundler is the CA bundle of a webhook's certificate.
type Bundler interface {
	Bundle() ([]byte, error)
	// Changed returns a channel that is closed at the next change.
	Changed() <-chan struct{}
}

// called is what all entries have in common: whom the API server calls, and what it trusts.
type called struct {
	token  string
	bundle []byte
}

func (t *WebhookTarget) client(r policies.WebhookRules, c called) admissionregistrationv1.WebhookClientConfig {
	path, bundle := "/"+c.token+r.Part.Path(t.Paths[r.Webhook]), c.bundle
	if t.URL != "" {
		url := strings.TrimSuffix(t.URL, "/") + path
		return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: bundle}
	}
	return admissionregistrationv1.WebhookClientConfig{CABundle: bundle,
		Service: &admissionregistrationv1.ServiceReference{
			Namespace: t.Service.Namespace, Name: t.Service.Name, Path: &path, Port: new(int32(443)),
		}}
}

// configurator keeps the webhook configurations as the policies need them. Only requests that a
// policy is about come to Weir, with those for policies and the canary.
type configurator struct {
	client     typedadmissionregistrationv1.AdmissionregistrationV1Interface
	namespaces typedcorev1.NamespaceInterface
	policies   *live.State
	target     *WebhookTarget
	// kept returns the resources whose objects the API server stores, and lets clients change and
	// delete; none before discovery.
	kept   func() []schema.GroupResource
	canary *canary
	log    logr.Logger

	remembered bool // remember has been called
}

// selectable returns the resources whose objects a policy can be about when it names none.
func selectable(s *follow.Store) []schema.GroupResource {
	var out []schema.GroupResource
	for _, k := range s.Stats().Kinds {
		if k.Served && k.Listable && k.Deletable && k.Patchable {
			out = append(out, k.GroupResource())
		}
	}
	return out
}

func (c *configurator) run(ctx context.Context) {
	failing := false
	kinds := time.NewTicker(lookAtKinds)
	defer kinds.Stop()
	for {
		changed, renewed, token := c.policies.Changed(), c.target.Certificates.Changed(), c.target.Token.Changed()
		pause, instead := configureEvery, c.instead(c.policies.Set())
		if err := c.apply(ctx); err != nil && ctx.Err() == nil {
			c.canary.unconfigured(err)
			if !failing {
				c.log.Info("cannot bring the webhook configurations up to date, will try again", "err", err.Error())
			}
			failing, pause = true, time.Second
		} else {
			failing = false
		}
		before, over := c.kept(), time.After(pause)
		for same := true; same; {
			select {
			case <-ctx.Done():
				return
			case <-kinds.C: // a '*' includes new kinds, too
				set := c.policies.Set()
				same = (!set.Wildcard() || slices.Equal(before, c.kept())) &&
					reflect.DeepEqual(instead, c.instead(set))
				continue
			case <-changed:
			case <-renewed:
			case <-token:
			case <-over:
			}
			same = false
		}
	}
}

// instead returns the webhooks that the API server need not call, because it judges by itself.
func (c *configurator) instead(inForce *policies.Set) map[policies.PolicyKey][]policies.Webhook {
	now, _ := c.canary.board.read()
	if now.judged.of != inForce {
		return nil
	}
	return now.judged.alone
}

// lookAtKinds is how often it is checked whether the served kinds, or what the API server judges by
// itself, have changed.
const lookAtKinds = time.Second

// apply brings both configurations up to date.
func (c *configurator) apply(ctx context.Context) error {
	set, kept := c.policies.Set(), c.kept()
	if len(kept) == 0 && set.Wildcard() {
		return errors.New("the kinds that the API server serves are not known")
	}
	rules := set.Webhooks(kept, c.instead(set))
	by, err := c.called(ctx)
	if err != nil {
		return err
	}
	fresh := managed()
	if fresh.OwnerReferences, err = c.owners(ctx); err != nil {
		return err
	}
	var mutating []admissionregistrationv1.MutatingWebhook
	var validating []admissionregistrationv1.ValidatingWebhook
	timeout := mutatingTimeout(rules)
	for _, r := range rules {
		if r.Mutating {
			mutating = append(mutating, c.mutating(r, by, timeout))
		} else {
			validating = append(validating, c.validating(r, by))
		}
	}
	validating = append(validating, c.validating(policies.CheckRules(), by),
		c.validating(policies.CanaryRules(c.target.CanaryNamespace), by))
	one, err := keep(ctx, c.client.MutatingWebhookConfigurations(),
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: fresh, Webhooks: mutating},
		func(o *admissionregistrationv1.MutatingWebhookConfiguration) *[]admissionregistrationv1.MutatingWebhook {
			return &o.Webhooks
		}, c.log)
	two, err2 := keep(ctx, c.client.ValidatingWebhookConfigurations(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: fresh, Webhooks: validating},
		func(o *admissionregistrationv1.ValidatingWebhookConfiguration) *[]admissionregistrationv1.ValidatingWebhook {
			return &o.Webhooks
		}, c.log)
	if err = errors.Join(err, err2); err == nil {
		c.canary.configured(set, one || two)
	}
	return err
}

func (c *configurator) called(ctx context.Context) (called, error) {
	written, err := writtenNow(ctx, c.client)
	if err != nil {
		return called{}, err
	}
	c.remember(written.Bundles)
	bundle, err := c.target.Certificates.Bundle()
	if err != nil {
		return called{}, fmt.Errorf("the webhook's CA is not known: %w", err)
	}
	token, err := c.target.Token.Next()
	if err != nil {
		return called{}, fmt.Errorf("the token of the webhook's paths is not known: %w", err)
	}
	return called{token, bundle}, nil
}

// remember has the source trust the bundles that are written now, once, before the first write. A
// process that waited to lead has not seen what another source has written meanwhile, and pods of
// the webhook may serve that one's certificates.
func (c *configurator) remember(bundles [][]byte) {
	r, ok := c.target.Certificates.(interface{ Remember(bundle []byte) error })
	if !ok || c.remembered {
		return
	}
	c.remembered = true
	for _, bundle := range bundles {
		if err := r.Remember(bundle); err != nil {
			c.log.Info("the CA bundle in the webhook configurations cannot be read: what is new takes its place", "err",
				err.Error())
		}
	}
}

// owners returns the owners of the configurations: the namespace of the Service. Without it the
// configurations would have every request wait for a webhook that no process serves, and refuse it
// under Fail.
func (c *configurator) owners(ctx context.Context) ([]metav1.OwnerReference, error) {
	name := c.target.Service.Namespace
	if name == "" {
		return nil, nil
	}
	ns, err := c.namespaces.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read namespace %s, which owns the webhook configurations: %w", name, err)
	}
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: name, UID: ns.UID}}, nil
}

func managed() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: policies.WebhookConfigurations,
		Labels: map[string]string{"app.kubernetes.io/managed-by": "weir"}}
}

// mutatingTimeout returns how long the API server waits for each mutating webhook, in seconds. It
// calls them one after the other, each twice if another webhook changes the object, and then the
// validating ones.
func mutatingTimeout(rules []policies.WebhookRules) int32 {
	n := int32(0)
	for _, r := range rules {
		if r.Mutating {
			n++
		}
	}
	return max(1, min(webhookTimeout, (serverTimeout-webhookTimeout)/(2*max(1, n))))
}

// All fields are set, defaults too, so that what the API server returns compares equal.

func (c *configurator) mutating(r policies.WebhookRules, by called,
	timeout int32) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: r.Name, ClientConfig: c.target.client(r, by), Rules: r.Rules, FailurePolicy: &r.FailurePolicy,
		MatchPolicy: new(admissionregistrationv1.Equivalent), NamespaceSelector: selector(r.NamespaceSelector),
		ObjectSelector: selector(r.ObjectSelector),
		SideEffects:    new(admissionregistrationv1.SideEffectClassNone), TimeoutSeconds: &timeout,
		AdmissionReviewVersions: []string{"v1"}, ReinvocationPolicy: new(admissionregistrationv1.IfNeededReinvocationPolicy),
		MatchConditions: r.MatchConditions,
	}
}

func (c *configurator) validating(r policies.WebhookRules, by called) admissionregistrationv1.ValidatingWebhook {
	effects := admissionregistrationv1.SideEffectClassNone
	if r.Webhook == policies.WebhookDelete {
		effects = admissionregistrationv1.SideEffectClassNoneOnDryRun // it adds finalizers
	}
	return admissionregistrationv1.ValidatingWebhook{
		Name: r.Name, ClientConfig: c.target.client(r, by), Rules: r.Rules, FailurePolicy: &r.FailurePolicy,
		MatchPolicy: new(admissionregistrationv1.Equivalent), NamespaceSelector: selector(r.NamespaceSelector),
		ObjectSelector: selector(r.ObjectSelector),
		SideEffects:    &effects, TimeoutSeconds: new(int32(webhookTimeout)), AdmissionReviewVersions: []string{"v1"},
		MatchConditions: r.MatchConditions,
	}
}

func selector(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return &metav1.LabelSelector{}
	}
	return s
}

// configurations is a client of one kind of configuration.
type configurations[C metav1.Object] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (C, error)
	Create(ctx context.Context, c C, o metav1.CreateOptions) (C, error)
	Update(ctx context.Context, c C, o metav1.UpdateOptions) (C, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// keep brings one configuration up to date with the wanted webhooks, and deletes it if there are
// none. fresh is a new configuration with them, and webhooks returns those of an existing one. It
// reports whether it changed anything.
func keep[C metav1.Object, W any](ctx context.Context, api configurations[C], fresh C, webhooks func(C) *[]W,
	log logr.Logger) (changed bool, err error) {
	want := len(*webhooks(fresh))
	have, err := api.Get(ctx, policies.WebhookConfigurations, metav1.GetOptions{})
	there, did := err == nil, ""
	switch {
	case err != nil && !apierrors.IsNotFound(err):
	case want > 0:
		_, did, err = write(ctx, api, fresh, have, there, true, webhooks)
	case there:
		uid := have.GetUID()
		did, err = "deleted", api.Delete(ctx, policies.WebhookConfigurations,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	default:
		err = nil
	}
	if err != nil {
		return false, fmt.Errorf("bring %T %s up to date: %w", fresh, policies.WebhookConfigurations, err)
	}
	if did != "" {
		log.Info("webhook configuration "+did, "kind", fmt.Sprintf("%T", fresh), "webhooks", want)
	}
	return did != "", nil
}

// write creates an object, or updates it if what spec returns, or its owners, differ, and it may be
// changed. did says what was done; empty for nothing.
func write[C metav1.Object, S any](ctx context.Context, api configurations[C], want, have C, there, free bool,
	spec func(C) *S) (now C, did string, err error) {
	switch {
	case !there:
		did = "created"
		now, err = api.Create(ctx, want, metav1.CreateOptions{})
	case equality.Semantic.DeepEqual(*spec(have), *spec(want)) &&
		equality.Semantic.DeepEqual(have.GetOwnerReferences(), want.GetOwnerReferences()):
		return have, "", nil
	case !free:
		return have, "", errAfterWebhook
	default:
		*spec(have) = *spec(want)
		have.SetOwnerReferences(want.GetOwnerReferences())
		did = "updated"
		now, err = api.Update(ctx, have, metav1.UpdateOptions{})
	}
	return now, did, err
}
