package enforce

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedadmissionregistrationv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// objects are a ValidatingAdmissionPolicy and the binding of its name; nil: it does not exist.
type objects struct {
	policy  *admissionregistrationv1.ValidatingAdmissionPolicy
	binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// readInProcess returns Weir's objects, by name.
func readInProcess(ctx context.Context, client typedadmissionregistrationv1.AdmissionregistrationV1Interface,
) (map[string]objects, error) {
	ours, out := metav1.ListOptions{LabelSelector: v1beta1.InProcessLabel}, map[string]objects{}
	all, err := client.ValidatingAdmissionPolicies().List(ctx, ours)
	if apierrors.IsNotFound(err) { // the API server does not serve them
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list ValidatingAdmissionPolicies: %w", err)
	}
	bindings, err := client.ValidatingAdmissionPolicyBindings().List(ctx, ours)
	if err != nil {
		return nil, fmt.Errorf("list ValidatingAdmissionPolicyBindings: %w", err)
	}
	for i := range all.Items {
		out[all.Items[i].Name] = objects{policy: &all.Items[i]}
	}
	for i := range bindings.Items {
		o := &bindings.Items[i]
		out[o.Name] = objects{out[o.Name].policy, o}
	}
	return out, nil
}

var errAfterWebhook = errors.New("the ValidatingAdmissionPolicy of the policy as it was stays in force until the " +
	"API server asks Weir's webhook about the policy as it is")

// bring brings one policy's objects up to date, and returns them. If it is not free to change any,
// it only creates what is missing.
func (p *inProcess) bring(ctx context.Context, want policies.InProcess, have objects,
	owners []metav1.OwnerReference, free bool) (objects, error) {
	label := func(o metav1.Object) {
		o.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "weir", v1beta1.InProcessLabel: "true"})
		o.SetOwnerReferences(owners)
	}
	label(want.Admission)
	label(want.Binding)
	for _, m := range []*admissionregistrationv1.MatchResources{
		want.Admission.Spec.MatchConstraints, want.Binding.Spec.MatchResources} {
		if m != nil { // as the API server returns it
			m.NamespaceSelector, m.ObjectSelector = selector(m.NamespaceSelector), selector(m.ObjectSelector)
		}
	}
	if free && have.policy != nil && have.binding != nil &&
		!equality.Semantic.DeepEqual(have.policy.Spec, want.Admission.Spec) &&
		!equality.Semantic.DeepEqual(have.binding.Spec, want.Binding.Spec) {
		// The new policy would judge what the old selectors select.
		if err := p.remove(ctx, objects{binding: have.binding}); err != nil {
			return have, fmt.Errorf("delete the binding as it was: %w", err)
		}
		have.binding = nil
	}
	type (
		policy  = admissionregistrationv1.ValidatingAdmissionPolicy
		binding = admissionregistrationv1.ValidatingAdmissionPolicyBinding
	)
	var now objects
	var err error
	now.policy, _, err = write(ctx, p.client.ValidatingAdmissionPolicies(), want.Admission, have.policy,
		have.policy != nil, free, func(o *policy) *admissionregistrationv1.ValidatingAdmissionPolicySpec { return &o.Spec })
	if err == nil {
		now.binding, _, err = write(ctx, p.client.ValidatingAdmissionPolicyBindings(), want.Binding, have.binding,
			have.binding != nil, free, func(o *binding) *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec {
				return &o.Spec
			})
	}
	if err != nil && !errors.Is(err, errAfterWebhook) {
		err = fmt.Errorf("write the ValidatingAdmissionPolicy %s: %w", want.Admission.Name, err)
	}
	return now, err
}

// remove deletes the binding first: a policy without a binding judges nothing.
func (p *inProcess) remove(ctx context.Context, o objects) error {
	var errs []error
	if o.binding != nil {
		errs = append(errs, p.client.ValidatingAdmissionPolicyBindings().Delete(ctx, o.binding.Name, metav1.DeleteOptions{}))
	}
	if o.policy != nil {
		errs = append(errs, p.client.ValidatingAdmissionPolicies().Delete(ctx, o.policy.Name, metav1.DeleteOptions{}))
	}
	for i, err := range errs {
		if apierrors.IsNotFound(err) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// canaryOf returns the name of the canary that is written after these objects as they are; empty if
// there are none. An API server that answers by it has read them.
func canaryOf(stored map[string]objects) string {
	if len(stored) == 0 {
		return ""
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		for _, o := range []metav1.Object{stored[name].policy, stored[name].binding} {
			_, _ = fmt.Fprintln(h, name, o.GetUID(), o.GetGeneration())
		}
	}
	return fmt.Sprintf("weir-canary-%x", h.Sum(nil)[:5])
}
