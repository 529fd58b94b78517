package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
apiVersion: weir.dev/v1alpha1
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

// label gives an object a label.
func (w *fixture) label(name, key, value string) {
	w.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{key: value}}})
	if err != nil {
		w.Fatal(err)
	}
	w.patch(name, string(patch))
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

func TestDrainPolicy(t *testing.T) {
	t.Parallel()
	cluster := newOrdered(t, plane.Options{},
		drainPolicy("four", `
  - {name: configs, resources: [{apiGroups: [""], resources: [configmaps]}]}
  - {name: batch, resources: [{apiGroups: [""], resources: [pods]}], objectSelector: {matchLabels: {tier: batch}}}
  - {name: pods, resources: [{apiGroups: [""], resources: [pods]}]}
  - {name: rest, resources: [{apiGroups: [""], resources: [secrets]}]}
`),
		drainPolicy("waits", `
  - {name: configs, timeout: 1s, onTimeout: Wait, resources: [{apiGroups: [""], resources: [configmaps]}]}
  - {name: rest, resources: [{apiGroups: [""], resources: [secrets]}]}
`),
		drainPolicy("proceeds", `
  - {name: configs, timeout: 1s, onTimeout: Proceed, resources: [{apiGroups: [""], resources: [configmaps]}]}
  - {name: rest, resources: [{apiGroups: [""], resources: [secrets]}]}
`))
	for name, test := range map[string]func(*fixture){
		"waves go one after the other and labels decide": (*fixture).drainsInOrder,
		"a wave that waits says so when it times out":    (*fixture).drainWaits,
		"a wave that proceeds holds up no other":         (*fixture).drainProceeds,
		"annotations from elsewhere count for nothing":   (*fixture).drainIgnoresOldAnnotations,
		"a policy that comes later is followed":          (*fixture).drainFollowsPolicy,
		"garbage goes with its wave":                     (*fixture).drainKeepsGarbage,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(fixtureIn(t, cluster.cluster))
		})
	}
}

func (w *fixture) drainsInOrder() {
	w.order("four")
	w.make(`
		sec keys
		po  web    finalizers=(example.com/hold)
		po  job    finalizers=(example.com/hold)
		cm  conf   finalizers=(example.com/hold)
		cm  other
	`)
	w.label("job", "tier", "batch")
	uid := w.drop()
	first := w.awaitWave("configs")
	w.awaitConditions("WeirDraining=True Waiting: wave 1 of 4 (configs): waiting for 1 configmaps (1 terminating): configmaps " +
		w.namespace + "/conf is held by finalizer example.com/hold: the controller of example.com is expected to remove it")
	w.alive("job", "web", "keys")
	w.unfinalize("conf")

	second := w.awaitWave("batch")
	w.awaitTerminating("job")
	w.awaitConditions("WeirDraining=True Waiting: wave 2 of 4 (batch): waiting for 1 pods (1 terminating): pods " + w.namespace + "/job is held…")
	w.alive("web", "keys")
	w.unfinalize("job")

	third := w.awaitWave("pods")
	w.awaitTerminating("web")
	w.awaitConditions("WeirDraining=True Waiting: wave 3 of 4 (pods): waiting for 1 pods (1 terminating): pods " + w.namespace + "/web is held…")
	w.alive("keys")
	w.unfinalize("web")
	w.awaitDropped(uid)
	w.awaitGone("keys", "job", "web", "conf", "other")
	if !slices.IsSortedFunc([]time.Time{first, second, third}, time.Time.Compare) {
		w.Errorf("the waves began at %s, %s and %s", first, second, third)
	}
}

func (w *fixture) drainWaits() {
	w.order("waits")
	w.make(`
		sec keys
		cm  conf  finalizers=(example.com/hold)
	`)
	uid := w.drop()
	why := "wave 1 of 2 (configs) has timed out after 1s: waiting for 1 configmaps (1 terminating): configmaps " +
		w.namespace + "/conf is held by finalizer example.com/hold: the controller of example.com is expected to remove it"
	w.awaitConditions("WeirDraining=True TimedOut: " + why)
	w.alive("keys")
	w.until("an Event says so", func(context.Context) (bool, error) {
		return slices.Contains(w.namespaceEvents(uid, "WaveBlocked"), why), nil
	})
	w.unfinalize("conf")
	w.awaitDropped(uid)
}

func (w *fixture) drainProceeds() {
	w.order("proceeds")
	w.make(`
		sec keys
		cm  conf  finalizers=(example.com/hold)
	`)
	uid := w.drop()
	w.awaitWave("rest")
	w.awaitGone("keys")
	w.awaitConditions("WeirDraining=True TimedOut: all waves are over, but wave 1 of 2 (configs) timed out after 1s and left 1 configmaps (1 terminating): configmaps " + w.namespace + "/conf is held…")
	if w.get("conf") == nil {
		w.Error("conf is gone")
	}
	w.unfinalize("conf")
	w.awaitDropped(uid)
}

func (w *fixture) drainIgnoresOldAnnotations() {
	w.annotate(`{"metadata":{"annotations":{"weir.dev/drain":"rest","weir.dev/drain-since":"2020-01-01T00:00:00Z"}}}`)
	w.order("proceeds")
	w.make(`
		sec keys  finalizers=(example.com/hold)
		cm  conf  finalizers=(example.com/hold)
	`)
	uid := w.drop()
	w.awaitWave("configs")
	w.alive("keys")
	w.unfinalize("conf", "keys")
	w.awaitDropped(uid)
}

// drainFollowsPolicy: the namespace is selected by another policy while it drains.
func (w *fixture) drainFollowsPolicy() {
	w.make(`
		po  web   finalizers=(example.com/hold)
		cm  conf
	`)
	uid := w.drop()
	w.awaitConditions("WeirDraining=True Waiting: wave 1 of 2 (pods): waiting for 1 pods…")
	w.alive("conf")
	w.order("four")
	w.awaitGone("conf")
	w.awaitWave("pods")
	w.unfinalize("web")
	w.awaitDropped(uid)
}

// drainKeepsGarbage: the owner of what pods use goes before them, and what they
// use does not; but what an owner waits for does.
func (w *fixture) drainKeepsGarbage() {
	w.order("four")
	w.make(`
		cm  conf
		sec keys     owners=(conf)
		po  job      finalizers=(example.com/hold)
		po  web
		sec awaited  owners=(web!block)
	`)
	w.label("job", "tier", "batch")
	w.settle()
	uid := w.drop()
	w.awaitGone("conf")
	w.awaitTerminating("job")
	w.delete("web", foreground)
	w.awaitGone("web", "awaited")
	if err := w.weir.AwaitIdle(w.Context()); err != nil {
		w.Fatal(err)
	}
	w.alive("keys")
	w.unfinalize("job")
	w.awaitDropped(uid)
}
