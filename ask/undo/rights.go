package undo

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/archive/restore"
)

// mostReviews bounds how often it is asked what the user may do. What is not asked about the API
// server says when it is done.
const mostReviews = 500

// rbac is the group of what grants rights.
const rbac = "rbac.authorization.k8s.io"

var (
	authorization = schema.GroupVersion{Group: "authorization.k8s.io", Version: "v1"}
	reviews       = authorization.WithResource("selfsubjectaccessreviews")
)

var verbs = map[restore.Outcome]string{
	restore.Create: "create", restore.Replace: "update", restore.Patch: "patch", restore.Free: "patch",
}

// right is what a step needs.
type right struct {
	verb      string
	kind      schema.GroupResource
	namespace string
}

// Refuse marks the steps of a plan that the user may not do. Whether the user may grant what a Role
// or a binding grants is found out by a dry run.
func Refuse(ctx context.Context, client dynamic.Interface, p *restore.Plan) {
	asked := map[right]bool{} // refused
	tried := 0
	for _, s := range p.Acting() {
		r := right{verbs[s.Outcome], s.Ref.Kind, s.Ref.Namespace}
		if _, ok := asked[r]; !ok && len(asked) < mostReviews {
			asked[r] = refused(ctx, client, r)
		}
		if asked[r] {
			s.Refused = fmt.Sprintf("you may not %s it", r.verb)
			continue
		}
		written := s.Outcome == restore.Create || s.Outcome == restore.Replace
		if written && s.Ref.Kind.Group == rbac && tried < mostReviews {
			tried++
			if err := try(ctx, client, s); apierrors.IsForbidden(err) {
				s.Refused = fmt.Sprintf("you may not %s it: %v", r.verb, err)
			}
		}
	}
}

// try has the API server judge a step, and change nothing. It does not judge what is in a namespace
// that is not there yet, nor a binding of a Role that is not.
func try(ctx context.Context, client dynamic.Interface, s *restore.Step) (err error) {
	of, dry := resourceOf(client, s), []string{metav1.DryRunAll}
	if s.Outcome == restore.Replace {
		_, err = of.Update(ctx, s.Object, metav1.UpdateOptions{DryRun: dry})
	} else {
		_, err = of.Create(ctx, s.Object, metav1.CreateOptions{DryRun: dry})
	}
	return err
}

// refused tells whether the API server says no. No answer is none.
func refused(ctx context.Context, client dynamic.Interface, r right) bool {
	review := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"resourceAttributes": map[string]any{"verb": r.verb, "group": r.kind.Group, "resource": r.kind.Resource,
			"namespace": r.namespace}}}}
	review.SetGroupVersionKind(authorization.WithKind("SelfSubjectAccessReview"))
	answer, err := client.Resource(reviews).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false
	}
	allowed, known, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
	return known && !allowed
}
