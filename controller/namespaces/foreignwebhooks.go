package namespaces

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	typedadmissionregistrationv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/policies"
)

// foreign knows the admission webhooks, Weir's own aside, that see objects as they are created. The
// API server asks them after it has made sure that the namespace is not being deleted, and waits
// for them: what they let through may arrive when the namespace is empty, or gone.
type foreign struct {
	client typedadmissionregistrationv1.AdmissionregistrationV1Interface
	store  *follow.Store

	reading sync.Mutex // held by who reads them: others wait for what it finds
	mu      sync.Mutex
	changes int // of the configurations, as their watches show them
	// The webhooks as they were last read: after so many changes, and when.
	read  int
	when  time.Time
	hooks []foreignHook
	past  []pastHooks
}

// pastHooks are the webhooks from before others were read. A request may still be with one of them
// until then.
type pastHooks struct {
	hooks []foreignHook
	until time.Time
}

// foreignHook is one webhook: whose creates it sees.
type foreignHook struct {
	name       string
	namespaces labels.Selector
	rules      []admissionregistrationv1.RuleWithOperations
}

// changed is told of each change to a webhook configuration.
func (f *foreign) changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
}

// sees names a webhook that may see what is created in a namespace, as of a time or later; empty if
// there is none. Unknown counts as one.
func (f *foreign) sees(ctx context.Context, ns *corev1.Namespace, since time.Time) string {
	return f.first(ctx, since, func(h foreignHook) bool { return h.namespaces.Matches(labels.Set(ns.Labels)) })
}

// any names a webhook that may see what is created in any namespace.
func (f *foreign) any(ctx context.Context, since time.Time) string {
	return f.first(ctx, since, func(foreignHook) bool { return true })
}

func (f *foreign) first(ctx context.Context, since time.Time, about func(foreignHook) bool) string {
	hooks, err := f.asOf(ctx, since)
	if err != nil {
		return fmt.Sprintf("admission webhooks that are not known (%v)", err)
	}
	hooks = slices.DeleteFunc(hooks, func(h foreignHook) bool { return !about(h) })
	if len(hooks) == 0 {
		return ""
	}
	kinds := f.store.Stats().Kinds
	for _, h := range hooks {
		if slices.ContainsFunc(h.rules, func(r admissionregistrationv1.RuleWithOperations) bool { return seesCreate(r, kinds) }) {
			return "admission webhook " + h.name
		}
	}
	return ""
}

// asOf are the webhooks as they were at a time, or later. What was read before stands for them
// while the graph follows the configurations and has seen no change: then this makes no request.
func (f *foreign) asOf(ctx context.Context, since time.Time) ([]foreignHook, error) {
	followed := 0
	for _, k := range f.store.Stats().Kinds {
		if gr := k.GroupResource(); k.State == graph.Synced && (gr == kinds.MutatingConfigurations || gr == kinds.ValidatingConfigurations) {
			followed++
		}
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	f.mu.Lock()
	fresh := !f.when.IsZero() && (followed == 2 && f.read == f.changes || !f.when.Before(since))
	changes := f.changes
	f.mu.Unlock()
	if !fresh {
		began := time.Now()
		hooks, err := f.list(ctx)
		if err != nil {
			return nil, err
		}
		f.mu.Lock()
		if !reflect.DeepEqual(f.hooks, hooks) { // those that were read again are there, and need not be remembered each time
			f.past = append(f.past, pastHooks{f.hooks, time.Now().Add(lateFor)})
		}
		f.read, f.when, f.hooks = changes, began, hooks
		f.mu.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.past = slices.DeleteFunc(f.past, func(p pastHooks) bool { return time.Now().After(p.until) })
	all := slices.Clone(f.hooks)
	for _, p := range f.past {
		all = append(all, p.hooks...)
	}
	return all, nil
}

func (f *foreign) list(ctx context.Context) ([]foreignHook, error) {
	ctx, cancel := context.WithTimeout(ctx, request.Timeout)
	defer cancel()
	mutating, err := f.client.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list mutating webhook configurations: %w", err)
	}
	validating, err := f.client.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list validating webhook configurations: %w", err)
	}
	var hooks []foreignHook
	for _, c := range mutating.Items {
		for _, h := range c.Webhooks {
			hooks = append(hooks, hookOf(c.Name, h.Name, h.NamespaceSelector, h.Rules)...)
		}
	}
	for _, c := range validating.Items {
		for _, h := range c.Webhooks {
			hooks = append(hooks, hookOf(c.Name, h.Name, h.NamespaceSelector, h.Rules)...)
		}
	}
	return hooks, nil
}

// hookOf is a webhook if it is not Weir's. A selector that cannot be read selects everything.
func hookOf(configuration, name string, namespaces *metav1.LabelSelector, rules []admissionregistrationv1.RuleWithOperations) []foreignHook {
	if configuration == policies.WebhookConfigurations {
		return nil
	}
	selector := labels.Everything()
	if namespaces != nil {
		if s, err := metav1.LabelSelectorAsSelector(namespaces); err == nil {
			selector = s
		}
	}
	return []foreignHook{{name, selector, rules}}
}

// seesCreate tells whether a rule is about the creation of objects of a kind that is in namespaces.
func seesCreate(r admissionregistrationv1.RuleWithOperations, kinds []graph.KindStats) bool {
	if !slices.Contains(r.Operations, admissionregistrationv1.Create) && !slices.Contains(r.Operations, admissionregistrationv1.OperationAll) {
		return false
	}
	if r.Scope != nil && *r.Scope == admissionregistrationv1.ClusterScope {
		return false
	}
	return slices.ContainsFunc(kinds, func(k graph.KindStats) bool {
		return k.Served && k.Namespaced && names(r.APIGroups, k.Group) && slices.ContainsFunc(r.Resources, func(resource string) bool {
			name, sub, of := strings.Cut(resource, "/") // "*/*" is everything too, "pods/*" are subresources only
			return (name == "*" || name == k.Resource.Resource && !of) && (!of || sub == "*")
		})
	})
}

// names tells whether a list of a rule names something, or everything.
func names(list []string, name string) bool {
	return slices.Contains(list, name) || slices.Contains(list, "*")
}
