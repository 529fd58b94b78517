//go:build full

package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// doctor runs weir doctor.
func (w *fixture) doctor(kubeconfig string, flags ...string) (out string, code int) {
	w.Helper()
	return w.command(append([]string{"doctor", "--kubeconfig", kubeconfig, "-n", metav1.NamespaceSystem}, flags...)...)
}

// mustFind wants lines of a doctor that begin with a grade, and have what it is about, and all words.
func (w *fixture) mustFind(out string, want ...string) {
	w.Helper()
	for _, line := range want {
		grade, words, _ := strings.Cut(line, " ")
		found := false
		for have := range strings.Lines(out) {
			all := strings.HasPrefix(have, grade+" ")
			for word := range strings.SplitSeq(words, "…") {
				all = all && strings.Contains(have, strings.TrimSpace(word))
			}
			found = found || all
		}
		if !found {
			w.Errorf("%q is not in\n%s", line, out)
		}
	}
}

// TestDoctorSaysWhatIsWrong in clusters with and without another collector, before and after Weir runs.
func TestDoctorSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.All})
	if err := installCRDs(t.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	w.create("cm", "garbage", []metav1.OwnerReference{ownerThatNeverWas()})
	w.awaitGoneIn(collectorBegins, "garbage") // the collector has begun
	admin := w.plane.Kubeconfig
	// As a managed cluster: its kube-controller-manager is no pod.
	out, code := w.doctor(admin)
	w.mustFind(out, "ok Kubernetes…v1.", "unknown garbage collector…no kube-controller-manager is seen", "ok mode…companion", "warning controller…no controller of Weir", "ok permission…your own user…has all", "ok policies…there is none")
	if code != 0 {
		t.Errorf("exit code %d of\n%s", code, out)
	}
	out, _ = w.doctor(admin, "--try", "-n", "not-there") // before Weir is installed
	w.mustFind(out, "ok garbage collector…was deleted after")
	out, _ = w.doctor(admin, "--try")
	w.mustFind(out, "ok garbage collector…the cluster's own works (an object whose owner never existed was deleted after")
	out, code = w.doctor(admin, "--try", "--mode", "replace")
	w.mustFind(out, "problem garbage collector…does not work beside another")
	t.Logf("weir doctor --mode replace --try\n%s", out)
	if code != 1 || !strings.Contains(out, "append -garbage-collector-controller") {
		t.Errorf("exit code %d of\n%s", code, out)
	}
	// As kubeadm runs it.
	_, err := w.typed.CoreV1().Pods(metav1.NamespaceSystem).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-controller-manager-one", Labels: map[string]string{"component": "kube-controller-manager"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "kube-controller-manager", Image: "kube-controller-manager",
			Command: []string{"kube-controller-manager", "--leader-elect=true", "--controllers=*,-namespace-controller"}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, _ = w.doctor(admin)
	w.mustFind(out, "ok garbage collector…kube-controller-manager-one runs with --controllers=*,-namespace-controller",
		"problem namespace controller…none works", "ok mode…replace is possible")
	w.doctorKnowsFlags(admin)

	// Who may read nothing is told that, and not that all is well.
	discoverer, err := restricted(t.Context(), w.plane, "nobody", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:discovery"})
	if err != nil {
		t.Fatal(err)
	}
	out, code = w.doctor(discoverer)
	w.mustFind(out, "unknown garbage collector…cannot be read…forbidden", "unknown controller…forbidden", "problem permission…your own user…may not delete *.*", "unknown policies…forbidden")
	if code != 1 {
		t.Errorf("exit code %d of\n%s", code, out)
	}
}

// doctorKnowsFlags: whose deletes the brake holds and which Lease the controller waits for are in its Deployment.
func (w *fixture) doctorKnowsFlags(admin string) {
	w.Helper()
	labels := map[string]string{"app": "weir"}
	deployments := w.typed.AppsV1().Deployments(metav1.NamespaceSystem)
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--mode=companion", "--brake-users=" + builtinCollector}, "warning brake…kube-controller-manager-one deletes as system:kube-controller-manager, which is none of the users"},
		{[]string{"--mode=replace", "--drain-namespaces=false"}, "problem namespace controller…kube-controller-manager-one runs with…and Weir runs with --drain-namespaces=false"},
		{[]string{"--mode=replace", "--migration-lease=kube-system/collectors"}, "problem migration Lease…no replica holds the Lease kube-system/collectors"},
	} {
		_, err := deployments.Create(w.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "weir-controller"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "weir", Image: "weir", Args: append([]string{"controller"}, c.flags...)}}}},
		}}, metav1.CreateOptions{})
		if err != nil {
			w.Fatal(err)
		}
		out, _ := w.doctor(admin)
		w.mustFind(out, c.want)
		if err := deployments.Delete(w.Context(), "weir-controller", metav1.DeleteOptions{}); err != nil {
			w.Fatal(err)
		}
		w.until("the Deployment is gone", func(ctx context.Context) (bool, error) {
			_, err := deployments.Get(ctx, "weir-controller", metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
	}
}

// TestDoctorSeesThatWeirWorksAlone by the canary, and does not take Weir for another collector. Policies that are not in force are named.
func TestDoctorSeesThatWeirWorksAlone(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	if err := installCRDs(t.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	w.startWeir("--leader-elect")
	w.canary()
	w.policyNamed("DeletionPolicy", "broken", `
  match: {resources: [{apiGroups: [""], resources: [configmaps]}], conditions: [{name: none, expression: "no.such.thing"}]}
  protection: {confirmation: Required}
`)
	w.awaitCondition("DeletionPolicy", "broken", "Ready", metav1.ConditionFalse)
	// The canary counts once it has stood for half a minute.
	w.awaitMetrics("it leads", func(m weir.Metrics) bool {
		return m.Sum("weir_other_collector", "of", "garbage") == 0 && m.Has("weir_queue_oldest_seconds")
	})
	var out string
	w.awaitMetricsIn(2*patience, "the canary has stood", func(weir.Metrics) bool {
		out, _ = w.doctor(w.plane.Kubeconfig, "--mode", "replace", "--try")
		return strings.Contains(out, "none works but Weir (ConfigMap weir-collector-canary")
	})
	w.mustFind(out, "ok garbage collector…none works but Weir (ConfigMap weir-collector-canary has stood for", "ok controller…leads", "problem DeletionPolicy/broken…Ready is False (Invalid)")

	text, code := w.doctor(w.plane.Kubeconfig, "--mode", "replace", "-o", "json")
	var answer struct {
		Findings []struct{ About, Grade, Says, Do string }
		Facts    struct{ Mode string }
	}
	text, _, _ = strings.Cut(text, "\nError:")
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Findings) < 5 || answer.Facts.Mode != "replace" || code != 1 {
		t.Errorf("exit code %d, %v of\n%s", code, err, text)
	}
	left, err := w.typed.CoreV1().ConfigMaps(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, cm := range left.Items {
		if strings.HasPrefix(cm.Name, "weir-doctor-") {
			t.Errorf("%s was left", cm.Name)
		}
	}
}
