package casefile

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/weir-dev/weir/policies"
)

// ofEviction sets the resource of an Eviction, which is a request about its pod.
func ofEviction(q *policies.Question) {
	if q.Kind.Group == "policy" && q.Kind.Kind == "Eviction" && q.Subresource == "" {
		q.Resource, q.Subresource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "eviction"
	}
}

// evicted returns the delete of a pod that an eviction amounts to. The webhook reads the pod, whose
// name the request has.
func (c *Case) evicted(q policies.Question) (policies.Question, error) {
	if !q.Evicts() {
		return q, nil
	}
	if c.Pod == nil {
		return q, errors.New("an eviction is judged as the delete of its pod: the case needs the field pod, " +
			"the pod as it is in the cluster")
	}
	var pod map[string]any
	if err := json.Unmarshal(c.Pod.Raw, &pod); err != nil {
		return q, fmt.Errorf("decode pod: %w", err)
	}
	if u := (unstructured.Unstructured{Object: pod}); u.GetName() != q.Name || u.GetNamespace() != q.Namespace {
		return q, fmt.Errorf("the request evicts %q in namespace %q, and pod is %q in namespace %q", q.Name,
			q.Namespace, u.GetName(), u.GetNamespace())
	}
	return q.AsEvicted(q.Resource, pod), nil
}
