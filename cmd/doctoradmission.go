package cmd

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weir-dev/weir/internal/tools/doctor"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// admission finds the admission policies and webhooks of others that let the cluster's own
// collectors through by name.
func (p *patient) admission(ctx context.Context, f *doctor.Facts) error {
	for _, resource := range []string{"validatingadmissionpolicies", "mutatingadmissionpolicies",
		"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		kind := admissionregistrationv1.SchemeGroupVersion.WithResource(resource)
		list, err := p.dynamic.Resource(kind).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue // older API servers do not serve the kind
		case err != nil:
			return err
		}
		for i := range list.Items {
			u := &list.Items[i]
			names := doctor.LetsThrough(conditionsOf(u), f.User)
			_, ours := u.GetLabels()[v1beta1.InProcessLabel]
			if names != "" && u.GetName() != policies.WebhookConfigurations && !ours {
				f.Admission = append(f.Admission, doctor.Admission{Name: u.GetKind() + "/" + u.GetName(), Names: names})
			}
		}
	}
	return nil
}

// conditionsOf returns the expressions by which an admission policy, or each webhook of a
// configuration, selects deletes and updates, the requests of collectors.
func conditionsOf(u *unstructured.Unstructured) (out []string) {
	parts, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
	for _, part := range append(parts, u.Object["spec"]) {
		if slices.ContainsFunc(under(part, "operations", false), func(o string) bool {
			return o == "*" || o == string(admissionregistrationv1.Delete) || o == string(admissionregistrationv1.Update)
		}) {
			out = append(out, under(part, "expression", false)...)
		}
	}
	return out
}

// under returns the strings below a key, at any depth. With here, at is already below the key.
func under(at any, key string, here bool) (out []string) {
	switch at := at.(type) {
	case string:
		if here {
			out = append(out, at)
		}
	case []any:
		for _, v := range at {
			out = append(out, under(v, key, here)...)
		}
	case map[string]any:
		for k, v := range at {
			out = append(out, under(v, key, k == key)...)
		}
	}
	return out
}
