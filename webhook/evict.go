package webhook

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// evicted turns the eviction of a pod into the DELETE of that pod. It comes to admission as the
// CREATE of an Eviction, and the delete that follows comes to no webhook (RB 6.32). The review has
// only the name of the pod, so the pod is read. It returns false if there is none.
func (j *judge) evicted(ctx context.Context, q *policies.Question) (bool, error) {
	if q.Name == "" || q.Namespace == "" {
		return false, errors.New("judge an eviction: the request names no pod")
	}
	full := j.policies.Set().LooksBeyondMetadata(pods.GroupResource())
	pod, _, err := get(ctx, j.arm.lister, pods, q.Namespace, q.Name, full)
	if err != nil || pod == nil {
		return false, err
	}
	*q = q.AsEvicted(pods, pod)
	return true, nil
}

// evicting says in a refusal that an eviction was judged, and which pod.
func evicting(q *policies.Question, d policies.Decision) policies.Decision {
	d.Message = fmt.Sprintf("an eviction is judged as the delete of its pod, which has uid %s: %s",
		finalizers.MetaOf(q.OldObject).UID, d.Message)
	return d
}
