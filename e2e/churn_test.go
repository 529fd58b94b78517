//go:build full

package e2e

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

var (
	churnRounds = flag.Int("churn.rounds", 2, "how many namespaces of applications come, are rolled out, and go")
	churnFor    = flag.Duration("churn.for", 0, "for how long they go on doing so before a weir in shadow mode; at least the rounds are done")
)

// shadowLate is what users have.
const shadowLate = 2 * time.Minute

// churned is what one round has: deployments that are rolled out twice, services, and jobs.
const churned = 5

// TestChurnIsNotHeld: under the limits that users have, nothing is held of what a cluster's own
// life leaves behind, with all of Kubernetes' controllers at work and a weir that is killed in the
// middle of it. It prints how much of what was collected rests on inference, which
// docs/operating.md tells.
func TestChurnIsNotHeld(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.WithoutCollectors, Scheduler: true, Kwok: true,
		ControllerManagerFlags: []string{"--node-monitor-grace-period=24h"}}) // the node has no kubelet to say that it is there
	if err := installCRDs(t.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	w.startWeir()
	var inferred, held float64
	count := func() {
		m, err := w.weir.Metrics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inferred += m.Sum("weir_inferred_deletes_total", "answer", "go")
		held += m.Sum("weir_inferred_deletes_total", "answer", "held")
	}
	for round := range *churnRounds {
		ns := fmt.Sprintf("churn-%d", round)
		w.applications(ns)
		w.rollOut(ns, "example.com/app:2")
		w.deleteApplications(ns)
		if round%3 == 1 {
			count()
			w.weir.Kill()
		}
		w.beginChurnsEnd(ns)
		if round%3 == 1 {
			if err := w.weir.Restart(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		w.awaitChurnsEnd(ns)
	}
	count()
	deletes := 0
	for _, r := range w.auditOf(weirUser) {
		if r.Verb == "delete" && r.Status.Code == 200 {
			deletes++
		}
	}
	t.Logf("%d namespaces of applications came and went: weir deleted %d objects, %.0f of them by inference; %.0f were held", *churnRounds, deletes, inferred, held)
	if held > 0 {
		t.Errorf("%.0f objects were held", held)
	}
	if deletes == 0 {
		t.Error("nothing was collected")
	}
}

// TestShadowFindsNoDifferenceInChurn with all of Kubernetes' controllers at work, and its own
// collectors.
func TestShadowFindsNoDifferenceInChurn(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.All, Scheduler: true, Kwok: true,
		ControllerManagerFlags: []string{"--node-monitor-grace-period=24h"}})
	kubeconfig, err := w.reader()
	if err != nil {
		t.Fatal(err)
	}
	s, err := weir.StartShadow(context.WithoutCancel(t.Context()), weir.Options{Binary: shared.binary, Dir: w.plane.Dir, Kubeconfig: kubeconfig}, shadowLate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	began, rounds := time.Now(), 0
	for ; rounds < *churnRounds || time.Since(began) < *churnFor; rounds++ {
		ns := fmt.Sprintf("churn-%d", rounds)
		w.applications(ns)
		w.rollOut(ns, "example.com/app:2")
		w.deleteApplications(ns)
		w.beginChurnsEnd(ns)
		w.awaitChurnsEnd(ns)
	}
	found, err := s.End(t.Context())
	t.Logf("%d namespaces of applications came and went in %s:\n%s", rounds, time.Since(began).Round(time.Second), found)
	if err != nil {
		t.Error(err)
	}
	if !strings.Contains(found, "namespaces: ") || !strings.Contains(found, "delete: ") {
		t.Error("nothing was compared")
	}
}

func (w *fixture) beginChurnsEnd(ns string) {
	w.Helper()
	if err := w.typed.CoreV1().Namespaces().Delete(w.Context(), ns, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *fixture) awaitChurnsEnd(ns string) {
	w.Helper()
	w.until("the namespace is gone", func(ctx context.Context) (bool, error) {
		_, err := w.typed.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

// applications makes a namespace with them, and waits until they run.
func (w *fixture) applications(ns string) {
	w.Helper()
	ctx := w.Context()
	if _, err := w.typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	for i := range churned {
		name := fmt.Sprintf("app-%d", i)
		labels := map[string]string{"app": name}
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}}}
		once := *template.DeepCopy()
		once.Labels, once.Spec.RestartPolicy = nil, corev1.RestartPolicyNever
		_, err := w.typed.AppsV1().Deployments(ns).Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), RevisionHistoryLimit: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}}, metav1.CreateOptions{})
		if err != nil {
			w.Fatal(err)
		}
		_, err = w.typed.CoreV1().Services(ns).Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
			Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
		if err != nil {
			w.Fatal(err)
		}
		_, err = w.typed.BatchV1().Jobs(ns).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: once}}, metav1.CreateOptions{})
		if err != nil {
			w.Fatal(err)
		}
	}
	w.awaitRolledOut(ns)
}

// rollOut gives the deployments another image.
func (w *fixture) rollOut(ns, image string) {
	w.Helper()
	for i := range churned {
		patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q}]}}}}`, image)
		if _, err := w.typed.AppsV1().Deployments(ns).Patch(w.Context(), fmt.Sprintf("app-%d", i), types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	w.awaitRolledOut(ns)
}

func (w *fixture) awaitRolledOut(ns string) {
	w.Helper()
	w.until("the deployments of "+ns+" are rolled out", func(ctx context.Context) (bool, error) {
		list, err := w.typed.AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if d := &list.Items[i]; d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != 2 || d.Status.AvailableReplicas != 2 || d.Status.Replicas != 2 {
				return false, nil
			}
		}
		return true, nil
	})
}

// deleteApplications deletes the jobs, and all deployments and services but one; that goes with the
// namespace.
func (w *fixture) deleteApplications(ns string) {
	w.Helper()
	inBackground := metav1.DeleteOptions{PropagationPolicy: new(background)}
	for i := range churned {
		name := fmt.Sprintf("app-%d", i)
		err := w.typed.BatchV1().Jobs(ns).Delete(w.Context(), name, inBackground)
		if err == nil && i > 0 {
			err = w.typed.AppsV1().Deployments(ns).Delete(w.Context(), name, inBackground)
		}
		if err == nil && i > 0 {
			err = w.typed.CoreV1().Services(ns).Delete(w.Context(), name, metav1.DeleteOptions{})
		}
		if err != nil {
			w.Fatal(err)
		}
	}
}
