package enforce

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// fileReport writes the policies that are files into a ConfigMap, with the status that they would
// have as objects. Users who read the cluster see neither the files nor the log. Weir does not read
// it back.
type fileReport struct {
	maps      typedcorev1.ConfigMapInterface
	namespace string

	statuses map[policies.PolicyKey]anyStatus // the last statuses, with the times at which conditions changed
	written  string
}

// mostReported is how many bytes a ConfigMap can hold, less some room.
const mostReported = 900 << 10

// write writes the ConfigMap if it has changed.
func (r *fileReport) write(ctx context.Context, all []policies.Status, f facts) error {
	if r == nil {
		return nil
	}
	items, now := []v1beta1.FilePolicy{}, map[policies.PolicyKey]anyStatus{}
	for _, s := range all {
		if s.File == "" {
			continue
		}
		before := r.statuses[s.Policy]
		is := anyStatus{*before.DeepCopy(), s.Waves}
		is.say(s, 0, f)
		now[s.Policy] = is
		items = append(items, v1beta1.FilePolicy{Kind: s.Policy.Kind, Name: s.Policy.Name, File: s.File, Spec: s.Spec,
			Status: is.DeletionPolicyStatus})
	}
	r.statuses = now
	data, err := json.Marshal(items)
	for ; err == nil && len(data) > mostReported; data, err = json.Marshal(items) {
		items = items[:len(items)/2] // the metric weir_policy has those that are left out
	}
	if err != nil {
		return fmt.Errorf("encode the policies that are files: %w", err)
	}
	if string(data) == r.written {
		return nil
	}
	config := corev1ac.ConfigMap(v1beta1.FilePolicies, r.namespace).
		WithLabels(map[string]string{"app.kubernetes.io/managed-by": "weir"}).
		WithData(map[string]string{v1beta1.FilePoliciesKey: string(data)})
	if _, err := r.maps.Apply(ctx, config, metav1.ApplyOptions{FieldManager: "weir", Force: true}); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // the namespace is gone or terminating: no user reads it
		}
		return fmt.Errorf("write ConfigMap %s/%s: %w", r.namespace, v1beta1.FilePolicies, err)
	}
	r.written = string(data)
	return nil
}
