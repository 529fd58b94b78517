package e2e

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (w *fixture) annotate(patch string) {
	w.Helper()
	_, err := w.typed.CoreV1().Namespaces().Patch(w.Context(), w.namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

// awaitWave waits until the namespace says that a wave is under way, and returns
// since when.
func (w *fixture) awaitWave(wave string) time.Time {
	w.Helper()
	var ns *corev1.Namespace
	w.until("wave "+wave+" is under way", func(ctx context.Context) (_ bool, err error) {
		ns, err = w.typed.CoreV1().Namespaces().Get(ctx, w.namespace, metav1.GetOptions{})
		return err == nil && ns.Annotations["weir.dev/drain"] == wave, err
	})
	since, err := time.Parse(time.RFC3339, ns.Annotations["weir.dev/drain-since"])
	if err != nil {
		w.Errorf("since when wave %s is under way: %v", wave, err)
	}
	return since
}

// namespaceEvents are the messages of Events on the namespace.
func (w *fixture) namespaceEvents(uid types.UID, reason string) []string {
	w.Helper()
	list, err := w.typed.CoreV1().Events(metav1.NamespaceDefault).List(w.Context(), metav1.ListOptions{
		FieldSelector: fmt.Sprintf("involvedObject.uid=%s,reason=%s", uid, reason),
	})
	if err != nil {
		w.Fatal(err)
	}
	var told []string
	for _, e := range list.Items {
		told = append(told, e.Message)
	}
	return told
}
