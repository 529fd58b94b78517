package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/e2e/plane"
)

// ask runs the plugin of kubectl as a user, and returns what it prints and its exit code.
func (w *fixture) ask(kubeconfig string, args ...string) (out, said string, code int) {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), shared.plugin, append(args, "--kubeconfig", kubeconfig, "--cache-dir", w.TempDir())...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			w.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return stdout.String(), stderr.String(), code
}

// mustAsk is ask as the administrator, about the fixture's namespace.
func (w *fixture) mustAsk(args ...string) string {
	w.Helper()
	out, said, code := w.ask(w.plane.Kubeconfig, append(args, "-n", w.namespace)...)
	if code != 0 {
		w.Fatalf("weir %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, said)
	}
	return out
}

// mustSay makes sure that each of some words is in what was printed.
func (w *fixture) mustSay(out string, words ...string) {
	w.Helper()
	for _, word := range words {
		if !strings.Contains(out, word) {
			w.Errorf("%q is not in\n%s", word, out)
		}
	}
}

// TestPlanTellsWhatGoesAlong: with a namespace that is deleted because of its owner goes what it holds.
func TestPlanTellsWhatGoesAlong(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cr owns-a-namespace
		ns goes-along owners=(owns-a-namespace)
	`)
	inside := *w
	inside.namespace = "goes-along"
	inside.make(`
		cm of-what-goes
		sec deeper owners=(of-what-goes)
	`)
	w.mustSay(w.mustAsk("plan", "clusterrole/owns-a-namespace"), "- namespaces/goes-along", "goes-along/of-what-goes", "- secrets/goes-along/deeper")
	w.delete("owns-a-namespace", background)
	w.awaitGone("owns-a-namespace", "goes-along", "of-what-goes", "deeper")
}

// TestPlanTellsWhatADeleteDoes: and in what order, and changes nothing.
func TestPlanTellsWhatADeleteDoes(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm boss
		cm other
		cm leaf-1  owners=(boss!block)
		cm leaf-2  owners=(boss!block)
		cm below   owners=(leaf-1)
		cm shared  owners=(boss, other)
		cm held    owners=(boss)        finalizers=(example.com/hold)
		cm after   owners=(held)
	`)
	names := []string{"boss", "other", "leaf-1", "leaf-2", "below", "shared", "held", "after"}
	versions := w.versions(names)
	out := w.mustAsk("plan", "configmap", "boss")
	want := `- configmaps/boss
  ! configmaps/held: waits until another component removes example.com/hold
    - configmaps/after: after that
  ~ configmaps/shared: kept: owned by ConfigMap ` + w.namespace + `/other; not any more by ConfigMap ` + w.namespace + `/boss
  - configmaps/leaf-1
    - configmaps/below
  - configmaps/leaf-2

Plan: 6 objects are deleted in 5 steps, 1 of them waits for finalizers that others remove, 1 goes only after that, 1 is kept and loses a reference.
`
	if out != want {
		t.Errorf("weir plan configmap boss:\n%s\nwant\n%s", out, want)
	}
	if _, said, code := w.ask(w.plane.Kubeconfig, "plan", "cm/boss", "-n", w.namespace, "--exit-code"); code != 2 || said != "" {
		t.Errorf("exit code %d, %q, want 2 and nothing more: something waits for a finalizer", code, said)
	}
	var plan struct {
		Kind   string
		Items  []struct{ Name, Outcome string }
		Totals struct{ Deleted, Released int }
	}
	if err := json.Unmarshal([]byte(w.mustAsk("plan", "cm", "boss", "--cascade=orphan", "-o", "json")), &plan); err != nil {
		t.Fatal(err)
	}
	if plan.Kind != "Plan" || plan.Totals.Deleted != 1 || plan.Totals.Released != 4 {
		t.Errorf("the plan of an orphaning delete: %+v", plan)
	}
	if now := w.versions(names); !slices.Equal(values(now, names), values(versions, names)) {
		t.Errorf("a plan has changed something: %v, and was %v", now, versions)
	}
	file := filepath.Join(t.TempDir(), "plan.json")
	w.mustAsk("plan", "cm", "boss", "--out", file)
	w.mustSay(w.mustAsk("plan", "--check", file), "The plan is the same as before.")
	w.make("cm late owners=(boss)")
	out, _, code := w.ask(w.plane.Kubeconfig, "plan", "--check", file, "--exit-code")
	w.mustSay(out, "+ configmaps/"+w.namespace+"/late: is new in the plan: is deleted", "The plan has changed in 1 object.")
	if code != 4 {
		t.Errorf("exit code %d, want 4: the plan has changed", code)
	}
	other := w.beside()
	other.make("cm elsewhere")
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	both := strings.Replace(string(kept), `"roots": [`, `"roots": [{"kind": "configmaps", "namespace": "`+other.namespace+`", "name": "elsewhere", "uid": "`+string(other.of("elsewhere").uid)+`"},`, 1)
	if err := os.WriteFile(file, []byte(both), 0o600); err != nil {
		t.Fatal(err)
	}
	w.mustSay(w.mustAsk("plan", "--check", file), "+ configmaps/"+other.namespace+"/elsewhere", "late: is new in the plan")
	w.delete("boss", background)
	w.awaitGone("boss", "leaf-1", "leaf-2", "below", "late")
	w.awaitOwners("shared", "other")
	w.mustBeThere("held", "after", "other")
	w.mustSay(w.mustAsk("why", "cm", "held"), "is being deleted", "The finalizer example.com/hold holds it")
	w.mustSay(w.mustAsk("pending"), "1 waits for the component behind the finalizer example.com/hold", "configmaps/"+w.namespace+"/held")
	w.unfinalize("held")
	w.awaitGone("held", "after")
	w.mustStay("other", "shared")
}

func values(of map[string]string, names []string) (out []string) {
	for _, n := range names {
		out = append(out, of[n])
	}
	return out
}

// TestWhyNamesWhoHasToAct: each cause is the real fault, and some are two of them at a time.
func TestWhyNamesWhoHasToAct(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.kinds["pvc"] = kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, resource: "persistentvolumeclaims",
		body: `spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`}
	w.kinds["user"] = kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, resource: "pods",
		body: `spec: {nodeName: no-such-node, containers: [{name: c, image: c}], volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}`}
	w.make(`
		deploy web
		rs     web-1  owners=(web!block)
		cm     leaf   owners=(web-1!block)  finalizers=(example.com/hold)
		pvc    data                         finalizers=(kubernetes.io/pvc-protection)
		user   pod
	`)
	w.create("cm", "unserved", []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Gizmo", Name: "g", UID: "1"}})
	other := w.beside()
	other.make(`cm elsewhere finalizers=(example.com/hold)`)
	w.mustSay(w.mustAsk("plan", "pod", "pod"), "- pods/pod: up to 30s to stop")
	w.delete("web", foreground)
	w.delete("data", background)
	w.delete("pod", background)
	other.drop()
	w.until("the leaf terminates", func(context.Context) (bool, error) { return w.get("leaf").GetDeletionTimestamp() != nil, nil })
	for _, c := range []struct {
		ask  []string
		says []string
	}{
		{[]string{"deploy", "web"}, []string{"Foreground deletion: it waits for configmaps/" + w.namespace + "/leaf",
			"Who has to act: the component behind the finalizer example.com/hold"}},
		{[]string{"cm", "leaf"}, []string{"The finalizer example.com/hold holds it", `written by the field manager`}},
		{[]string{"pvc", "data"}, []string{"when no pod uses the claim", "pods that use the claim: pods/pod", "Who has to act: who runs pods/pod"}},
		{[]string{"pod", "pod"}, []string{"grace period", "the node that it runs on is not there any more"}},
		{[]string{"cm", "unserved"}, []string{"cannot be resolved, so it is kept", `no kind "Gizmo" in "example.com/v1"`, "who wrote the owner reference"}},
		{[]string{"namespace", other.namespace}, []string{"is left in the namespace: 1 configmaps", "example.com/hold on 1"}},
	} {
		w.mustSay(w.mustAsk(append([]string{"why"}, c.ask...)...), c.says...)
	}
	w.mustSay(w.mustAsk("tree", "cm", "leaf"), "! deployments.apps/web: terminating, waits for its dependents", "▶ configmaps/leaf: terminating, finalizers example.com/hold, blocks")
	w.mustSay(w.mustAsk("pending"), "3 wait for the component behind the finalizer example.com/hold", "deployments.apps/"+w.namespace+"/web", "the kubelet of its node")
	w.mustSay(w.mustAsk("orphans"), "These are kept, because their owners cannot be determined:\n  configmaps/"+w.namespace+"/unserved")
	w.unfinalize("leaf", "data")
	other.unfinalize("elsewhere")
	w.awaitGone("web", "web-1", "leaf")
}

// TestWhatMayNotBeReadIsSaidToBeUnknown: with fewer rights, answers say what they lack, and never more than the user may see.
func TestWhatMayNotBeReadIsSaidToBeUnknown(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	kubeconfig, err := restricted(w.Context(), w.plane, "reader", w.roleWithout("secrets"))
	if err != nil {
		t.Fatal(err)
	}
	w.make(`
		cm  boss
		cm  leaf    owners=(boss)
		sec hidden  owners=(boss)
		sec owner
		cm  doubt   owners=(owner)
	`)
	out, _, code := w.ask(kubeconfig, "plan", "cm", "boss", "-n", w.namespace, "--exit-code")
	w.mustSay(out, "- configmaps/boss", "- configmaps/leaf", "? secrets could not be read: ", "Incomplete: 1 of the kinds could not be read.")
	if code != 3 || strings.Contains(out, "hidden") {
		t.Errorf("exit code %d, want 3, and not a word of what may not be listed:\n%s", code, out)
	}
	out, said, _ := w.ask(kubeconfig, "orphans", "-n", w.namespace)
	w.mustSay(out, "These are kept, because their owners cannot be determined:\n  configmaps/"+w.namespace+"/doubt")
	w.mustSay(said, "incomplete: secrets could not be read: ")

	w.aggregate(w.serveHanging())
	w.until("the API server knows that the API does not answer", func(ctx context.Context) (bool, error) {
		s, err := w.dynamic.Resource(apiServices).Get(ctx, "v1."+aggregated, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(s.Object, "status", "conditions")
		return len(conditions) > 0, nil
	})
	w.drop() // it is not drained here
	w.mustSay(w.mustAsk("why", "namespace", w.namespace), "is being deleted", "3 configmaps", "2 secrets")
}

// TestBadQuestionsGetClearAnswers.
func TestBadQuestionsGetClearAnswers(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"plan"}, "name an object, as in: deployment web"},
		{[]string{"plan", "cm", "nobody"}, `configmaps "nobody" not found`},
		{[]string{"plan", "gizmo", "g"}, `the server doesn't have a resource type "gizmo"`},
		{[]string{"plan", "cm", "x", "--cascade=sideways"}, `--cascade "sideways": must be background, foreground or orphan`},
		{[]string{"tree", "cm", "x", "--up", "--down"}, "only one of them"},
		{[]string{"why", "cm", "x", "-o", "csv"}, `--output "csv": must be one of json, yaml`},
		{[]string{"history", "gizmo", "g"}, `the cluster serves no type "gizmo"`},
		{[]string{"history", "cm"}, "name one object, as in: deployment web"},
		{[]string{"plan", "cm", "x", "--server", "https://127.0.0.1:1"}, "the API server does not answer"},
	} {
		out, said, code := w.ask(w.plane.Kubeconfig, append(c.args, "-n", w.namespace)...)
		if code != 1 || out != "" || !strings.Contains(said, c.says) || strings.Count(strings.TrimSpace(said), "\n") > 0 {
			t.Errorf("weir %s: exit code %d\n%s%s\nwant a line with %q", strings.Join(c.args, " "), code, out, said, c.says)
		}
	}
}
