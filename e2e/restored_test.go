package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// lostKinds are what is recorded, besides the kind that the test defines.
const lostKinds = "deployments,statefulsets,replicasets,pods,configmaps,services,persistentvolumeclaims,jobs"

// TestRestoredTreeIsKept: what was deleted is as it was, but for uids and what the API server and
// controllers write; its references are those of a living tree, so that neither collector deletes
// anything of it; its pods run, and the claim that its StatefulSet owns has its volume again.
func TestRestoredTreeIsKept(t *testing.T) {
	t.Parallel()
	for collector, controllers := range map[string]plane.Controllers{"weir": plane.WithoutCollectors, "built-in": plane.All} {
		t.Run(collector, func(t *testing.T) {
			t.Parallel()
			w := newCluster(t, plane.Options{Controllers: controllers, Scheduler: true, Kwok: true, ControllerManagerFlags: lifted})
			if collector == "weir" {
				w.startWeir("--canary-time", "3s", weir.NoBrake)
			}
			w.mustKubectl("apply", "-f", "../policies/crds/weir.dev_deletedtrees.yaml", "-f", "../policies/crds/weir.dev_archivechunks.yaml")
			w.mustKubectl("wait", "--for=condition=Established", "crd/deletedtrees.weir.dev", "crd/archivechunks.weir.dev")
			names := w.makeLost()
			before, uids := w.lost(names)
			tree := w.record()
			w.loseAll(names)
			address := before["Service web"]["spec"].(map[string]any)["clusterIP"]
			w.applyText(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "thief"}, "spec": {"clusterIP": "%s", "ports": [{"port": 80}]}}`, address))

			out, said, code := w.ask(w.plane.Kubeconfig, "restore", tree, "--weir-namespace", w.namespace)
			if code != 0 {
				t.Fatalf("exit code %d\n%s%s", code, out, said)
			}
			w.mustSay(said, "services/"+w.namespace+"/web: with other addresses and ports than it had")
			after, now := w.lost(names)
			delete(before["Service web"]["spec"].(map[string]any), "clusterIP")
			delete(after["Service web"]["spec"].(map[string]any), "clusterIP")
			delete(before["Service web"]["spec"].(map[string]any), "clusterIPs")
			delete(after["Service web"]["spec"].(map[string]any), "clusterIPs")
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("what was restored is not what was (-before +after):\n%s", diff)
			}
			for _, name := range names {
				if uids[name] == now[name] {
					t.Errorf("%s was never gone", name)
				}
			}
			w.until("the pods of web run", func(context.Context) (bool, error) {
				sets := w.adopt("rs", w.ownedBy("web"))
				return len(sets) == 1 && len(w.adopt("po", w.ownedBy(sets[0]))) == 2, nil
			})
			w.until("the claim is bound", func(ctx context.Context) (bool, error) {
				claim, err := w.typed.CoreV1().PersistentVolumeClaims(w.namespace).Get(ctx, "data-db-0", metav1.GetOptions{})
				return err == nil && claim.Status.Phase == corev1.ClaimBound && claim.Spec.VolumeName == w.namespace, err
			})
			w.settleWith(collector)
			if _, last := w.lost(names); !maps.Equal(now, last) {
				t.Errorf("something of it was deleted: it was %v, and is %v", now, last)
			}
			w.mustSay(w.mustAsk("restore", tree, "--plan", "--weir-namespace", w.namespace), fmt.Sprintf("Plan: %d are there,", len(names)+1)) // kube-root-ca.crt was never gone
		})
	}
}

// makeLost makes what is going to be deleted, and returns what of it is restored.
func (w *fixture) makeLost() (names []string) {
	w.Helper()
	w.define(w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1"))
	w.deployed("web")
	w.make(`
		cm settings  owners=(web!block)  finalizers=(example.com/mine)
		widget gear  owners=(settings)
		cm below     owners=(gear!block*controller)
		cm day
		cm night     owners=(day)
	`)
	w.own("day", "night")
	w.applyText(fmt.Sprintf(`
{"apiVersion": "v1", "kind": "List", "items": [
{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}},
{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}},
{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": %[1]q}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "", "hostPath": {"path": "/none"}, "claimRef": {"namespace": %[1]q, "name": "data-db-0"}}},
{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {"serviceName": "", "selector": {"matchLabels": {"app": "db"}},
  "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}, "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}},
  "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}}]}`, w.namespace))
	w.mustKubectl("wait", "--for=create", "pvc/data-db-0")
	w.mustKubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data-db-0")
	w.mustKubectl("wait", "--for=jsonpath={.metadata.ownerReferences[0].kind}=StatefulSet", "pvc/data-db-0")
	return []string{"Deployment web", "ConfigMap settings", "Widget gear", "ConfigMap below", "ConfigMap day", "ConfigMap night",
		"Service web", "Job job", "StatefulSet db", "PersistentVolumeClaim data-db-0"}
}

// settleWith waits until a collector has done what there is to do.
func (w *fixture) settleWith(collector string) {
	w.Helper()
	if collector == "weir" {
		w.settle()
		return
	}
	for n := range 2 { // it works in the order of what it sees
		boss, leaf := fmt.Sprint("settles-", n), fmt.Sprint("settles-leaf-", n)
		w.make(fmt.Sprintf("cm %s\ncm %s owners=(%s)", boss, leaf, boss))
		w.delete(boss, background)
		w.awaitGoneIn(collectorBegins, leaf)
	}
}

func (w *fixture) applyText(text string, flags ...string) {
	w.Helper()
	file := w.TempDir() + "/objects.json"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	w.mustKubectl(append([]string{"apply", "-f", file}, flags...)...)
}

// recorded is all that there is of the kinds that are recorded, as kubectl prints it.
func (w *fixture) recorded() string {
	w.Helper()
	return w.mustKubectl("get", lostKinds+",widgets."+w.namespace+".example.com", "-o", "json")
}

// record has the archive keep it.
func (w *fixture) record() (tree string) {
	w.Helper()
	recorder, err := weir.Recorder(w.Context(), w.TempDir())
	if err != nil {
		w.Fatal(err)
	}
	cmd := exec.CommandContext(w.Context(), recorder, w.plane.Kubeconfig, w.namespace)
	cmd.Stdin = strings.NewReader(w.recorded())
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("record: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// loseAll deletes what was recorded, and waits until it is gone.
func (w *fixture) loseAll(names []string) {
	w.Helper()
	w.mustKubectl("delete", "deployment/web", "cm/day", "service/web", "job/job", "statefulset/db", "--wait=false")
	w.until("all of it is gone", func(context.Context) (bool, error) {
		_, _ = w.kubectl("patch", "cm/settings", "--type=merge", "-p", `{"metadata":{"finalizers":[]}}`) // once it terminates, it goes
		_, uids := w.lost(names)
		return len(uids) == 0 && !strings.Contains(w.recorded(), `"kind": "Pod"`), nil
	})
}

// lost is what there is of the named objects, by KIND NAME: what their users wrote, with the names
// of owners in the place of uids; and their uids.
func (w *fixture) lost(names []string) (objects map[string]map[string]any, uids map[string]string) {
	w.Helper()
	var list unstructured.UnstructuredList
	if err := json.Unmarshal([]byte(w.recorded()), &list); err != nil {
		w.Fatal(err)
	}
	objects, uids = map[string]map[string]any{}, map[string]string{}
	byUID := map[string]string{}
	for _, o := range list.Items {
		byUID[string(o.GetUID())] = o.GetKind() + " " + o.GetName()
	}
	for _, o := range list.Items {
		name := o.GetKind() + " " + o.GetName()
		if !slices.Contains(names, name) {
			continue
		}
		uids[name] = string(o.GetUID())
		if made, ok := w.made[o.GetName()]; ok && made.Kind == o.GetKind() {
			made.uid = o.GetUID()
			w.made[o.GetName()] = made
		}
		var owners []string
		for _, r := range o.GetOwnerReferences() {
			block, controls := r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion, r.Controller != nil && *r.Controller
			owners = append(owners, fmt.Sprintf("%s, blocks: %t, controls: %t", byUID[string(r.UID)], block, controls))
		}
		slices.Sort(owners)
		annotations := map[string]string{}
		maps.Copy(annotations, o.GetAnnotations())
		for _, written := range []string{"weir.dev/restored", "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "batch.kubernetes.io/job-tracking"} {
			delete(annotations, written)
		}
		text, err := json.Marshal(map[string]any{"labels": o.GetLabels(), "annotations": annotations, "finalizers": o.GetFinalizers(), "owners": owners, "spec": o.Object["spec"], "data": o.Object["data"]})
		if err != nil {
			w.Fatal(err)
		}
		var out map[string]any
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), string(o.GetUID()), "its uid")), &out); err != nil {
			w.Fatal(err)
		}
		objects[name] = out
	}
	return objects, uids
}
