package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/e2e/plane"
)

// drainPolicy selects the namespaces with the label order: NAME.
func drainPolicy(name, waves string) string {
	return fmt.Sprintf(`---
apiVersion: weir.dev/v1beta1
kind: DrainPolicy
metadata: {name: %[1]s}
spec:
  namespaceSelector: {matchLabels: {order: %[1]s}}
  waves:
%[2]s`, name, waves)
}

// newOrdered is a cluster whose weir has policies. No other controller drains in it.
func newOrdered(t *testing.T, o plane.Options, policies ...string) *fixture {
	t.Helper()
	w := newCluster(t, o)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "drain.yaml"), []byte(strings.Join(policies, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	w.startWeir("--policy-dir", dir)
	return w
}

// order lets a DrainPolicy select the fixture's namespace.
func (w *fixture) order(policy string) {
	w.Helper()
	w.annotate(fmt.Sprintf(`{"metadata":{"labels":{"order":%q}}}`, policy))
}

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
