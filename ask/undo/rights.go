package undo

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/archive/restore"
)

// mostReviews bounds how often it is asked what the user may do. What is not asked about the API
// server says when it is done.
const mostReviews = 500

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

// Refuse marks the steps of a plan that the user may not do.
func Refuse(ctx context.Context, client dynamic.Interface, p *restore.Plan) {
	asked := map[right]bool{} // refused
	for _, s := range p.Acting() {
		r := right{verbs[s.Outcome], s.Ref.Kind, s.Ref.Namespace}
		if _, ok := asked[r]; !ok && len(asked) < mostReviews {
			asked[r] = refused(ctx, client, r)
		}
		if asked[r] {
			s.Refused = fmt.Sprintf("you may not %s it", r.verb)
		}
	}
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
