package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestAVolumeComesBackWithItsClaim: a claim goes with its owner, and its volume, which was to be
// deleted then, stays, with its data. The claim that is restored gets the same volume, whose reclaim
// policy is as it was.
func TestAVolumeComesBackWithItsClaim(t *testing.T) {
	t.Parallel()
	w, _ := newPaired(t, replace, plane.Options{Controllers: plane.WithoutCollectors})
	w.archives(", volumes: Retain")
	w.make("cm a")
	w.applyText(fmt.Sprintf(`
{"apiVersion": "v1", "kind": "List", "items": [
{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": %[1]q}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "", "hostPath": {"path": "/none"}, "claimRef": {"namespace": %[1]q, "name": "data"}}},
{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": %[2]q}]}, "spec": {"storageClassName": "", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}`,
		w.namespace, w.of("a").uid))
	w.mustKubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data")
	volume := func(ctx context.Context) *corev1.PersistentVolume {
		v, err := w.typed.CoreV1().PersistentVolumes().Get(ctx, w.namespace, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	uid := volume(t.Context()).UID

	w.delete("a", background)
	w.awaitGone("a")
	w.until("the volume is released, and stays", func(ctx context.Context) (bool, error) {
		v := volume(ctx)
		return v.Status.Phase == corev1.VolumeReleased && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain, nil
	})
	tree := w.treeOf("a", func(*unstructured.Unstructured) bool { return true })
	w.mustAsk("restore", tree.GetName(), "--weir-namespace", metav1.NamespaceSystem)
	w.mustKubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data")
	v := volume(t.Context())
	if v.UID != uid || v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || v.Annotations["weir.dev/retained"] != "" {
		t.Errorf("the volume is %+v", v)
	}
}
