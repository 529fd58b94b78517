package chart_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-dev/weir/e2e/weir"
)

const labels = "app.kubernetes.io/part-of=weir"

// The life of a release. Each step rests on the one before, so it is one test.
func TestInstallUpgradeRollBackUninstall(t *testing.T) {
	ctx := t.Context()
	port := sayWhereTheAPIServerIs(t)

	t.Log("install, in shadow mode; the namespace takes restricted pods only")
	helm(t, "install", "weir", "weir", "--wait", "--timeout", "2m", "--values", "ci/shadow.yaml", "--set", "metrics.prometheusRule.enabled=false,uninstall.release=false")
	missesNothing(t, "shadow")

	t.Log("upgrade to companion mode")
	helm(t, "upgrade", "weir", "weir", "--wait", "--timeout", "2m", "--reset-values", "--set", "policies.protection=true")
	missesNothing(t, "companion")
	letsOutTo(t, port, "443")
	isRunByHelm(t)
	until(t, "the namespace cannot be deleted", func(ctx context.Context) (bool, error) {
		err := deletable(ctx)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "helm uninstall weir -n "+namespace), ignoring(err, apierrors.IsForbidden)
	})

	t.Log("upgrade to replace mode")
	helm(t, "upgrade", "weir", "weir", "--wait", "--timeout", "2m", "--values", "ci/replace.yaml")
	missesNothing(t, "replace")
	collects(t)

	t.Log("roll back")
	helm(t, "rollback", "weir", "2", "--wait", "--timeout", "2m")

	t.Log("back to shadow mode, in both ways: everything is released before the webhook goes")
	if _, said, err := tryHelm(t, "upgrade", "weir", "weir", "--reset-values", "--set", "mode=shadow", "--set", "uninstall.release=false"); err == nil || !strings.Contains(said, "set uninstall.release to true") {
		t.Errorf("helm upgrade to mode shadow, without a release: %v: %s", err, said)
	}
	for _, back := range [][]string{{"rollback", "weir", "1"}, {"upgrade", "weir", "weir", "--reset-values", "--set", "mode=shadow"}} {
		seen := watchOrder(t)
		helm(t, append(back, "--wait", "--timeout", "2m")...)
		seen.check(t, "weir-webhook")
		helm(t, "upgrade", "weir", "weir", "--wait", "--timeout", "2m", "--reset-values", "--set", "policies.protection=true")
	}

	t.Log("uninstall, with a policy in the cluster")
	policies := shared.dynamic.Resource(schema.GroupVersionResource{Group: "weir.dev", Version: "v1beta1", Resource: "deletionpolicies"})
	if _, err := policies.Create(ctx, policy("kept"), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		t.Fatal(err)
	}
	seen := watchOrder(t)
	helm(t, "uninstall", "weir", "--wait", "--timeout", "2m")
	seen.check(t, "weir-controller")
	until(t, "the namespace can be deleted", func(ctx context.Context) (bool, error) {
		err := deletable(ctx)
		return err == nil, ignoring(err, apierrors.IsForbidden)
	})
	if _, err := policies.Get(ctx, "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("the policy did not outlive the chart: %v", err)
	}
	nothingIsLeft(t)
}

// isRunByHelm has weir release look with the arguments of the hook that Helm keeps: it is Helm that
// has installed this. Of another release, and of a chart that was only printed, nothing would be
// changed.
func isRunByHelm(t *testing.T) {
	t.Helper()
	if hooks := helm(t, "get", "hooks", "weir"); !strings.Contains(hooks, "- --helm-release=weir\n") {
		t.Errorf("the hook does not know its release:\n%s", hooks)
	}
	if printed := helm(t, "template", "weir", "weir", "--kube-version", "1.36.3"); !strings.Contains(printed, "- --helm-release=-\n") {
		t.Error("the hook that helm template prints takes itself for one that Helm runs")
	}
	for of, want := range map[string]int{"weir": 0, "other": 4, "-": 4} {
		cmd := exec.CommandContext(t.Context(), shared.weir, "release", "--dry-run", "--kubeconfig", shared.plane.Kubeconfig,
			"--stop-controller="+namespace+"/weir-controller", "--leader-elect-namespace="+namespace, "--helm-release="+of)
		out, err := cmd.CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("weir release as a hook of release %s ends with %d, want %d:\n%s", of, got, want, out)
		}
	}
}

// deletable tells whether Weir's namespace could be deleted.
func deletable(ctx context.Context) error {
	return shared.client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
}

// collects runs weir as the chart's controller, with the rights that the chart gave it and no
// others: they are enough to lead, to collect what has lost its owner, and to drain a namespace.
func collects(t *testing.T) {
	t.Helper()
	_, kubeconfig, err := shared.plane.UserConfig("system:serviceaccount:"+namespace+":weir-controller", "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	if err != nil {
		t.Fatal(err)
	}
	p, err := weir.Start(t.Context(), weir.Options{
		Binary: shared.weir, Kubeconfig: kubeconfig, Dir: t.TempDir(), LeaderElect: true,
		Flags: []string{"--leader-elect-namespace", namespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	metrics, err := p.Get(t.Context(), "/metrics", "")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(metrics, `weir_graph_kinds{state="forbidden"} 0`) {
		t.Errorf("there are kinds that the role does not let it list:\n%s", p.Tail(20))
	}
	ctx, core := t.Context(), shared.client.CoreV1()
	ns, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "collected-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owner, err := core.ConfigMaps(ns.Name).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reference := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}
	dependent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "dependent", OwnerReferences: []metav1.OwnerReference{reference}}}
	if _, err := core.ConfigMaps(ns.Name).Create(ctx, dependent, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := core.ConfigMaps(ns.Name).Delete(ctx, owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the dependent is collected", func(ctx context.Context) (bool, error) {
		_, err := core.ConfigMaps(ns.Name).Get(ctx, dependent.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), ignoring(err, apierrors.IsNotFound)
	})
	if err := core.Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the namespace is drained and gone", func(ctx context.Context) (bool, error) {
		_, err := core.Namespaces().Get(ctx, ns.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), ignoring(err, apierrors.IsNotFound)
	})
}

// missesNothing has weir doctor look: the chart's mode is seen, and there is no problem, once a new
// leader works.
func missesNothing(t *testing.T, mode string) {
	t.Helper()
	until(t, "weir doctor finds no problem in "+mode+" mode", func(ctx context.Context) (bool, error) {
		out, err := exec.CommandContext(ctx, shared.weir, "doctor", "--kubeconfig", shared.plane.Kubeconfig, "--namespace", namespace).CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			return false, err
		}
		seen := false
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			seen = seen || slices.Equal(f, []string{"ok", "mode", mode})
			if f[0] == "problem" && (mode != "companion" || f[1] != "garbage") { // this cluster has none, which doctor finds once a canary has stood for 30 s
				t.Log(line)
				return false, nil
			}
		}
		if !seen {
			return false, fmt.Errorf("weir doctor does not find %s mode: %w in\n%s", mode, err, out)
		}
		return true, nil
	})
}

func ignoring(err error, expected func(error) bool) error {
	if expected(err) {
		return nil
	}
	return err
}

// order is what Helm did, in the order that the API server gave it: revisions of its one store.
type order struct{ jobs, deployments watch.Interface }

func watchOrder(t *testing.T) order {
	t.Helper()
	jobs, err := shared.client.BatchV1().Jobs(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(jobs.Stop)
	deployments, err := shared.client.AppsV1().Deployments(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(deployments.Stop)
	return order{jobs, deployments}
}

// check says whether everything was released before a Deployment was removed.
func (o order) check(t *testing.T, deployment string) {
	t.Helper()
	released := revision(t, o.jobs, "a Job weir-release that succeeded", func(e watch.Event) bool {
		job, ok := e.Object.(*batchv1.Job)
		return ok && job.Name == "weir-release" && job.Status.Succeeded > 0
	})
	removed := revision(t, o.deployments, "the removal of "+deployment, func(e watch.Event) bool {
		d, ok := e.Object.(*appsv1.Deployment)
		return ok && d.Name == deployment && e.Type == watch.Deleted
	})
	if released >= removed {
		t.Errorf("%s was removed at revision %d, everything was released at %d only", deployment, removed, released)
	}
}

// revision is when something was seen. It was over before: what did not happen need not be waited
// for.
func revision(t *testing.T, w watch.Interface, what string, is func(watch.Event) bool) uint64 {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case e := <-w.ResultChan():
			if !is(e) {
				continue
			}
			o, err := meta.Accessor(e.Object)
			if err != nil {
				t.Fatal(err)
			}
			n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		case <-late:
			t.Fatalf("helm ended without %s", what)
		}
	}
}

func policy(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "weir.dev/v1beta1", "kind": "DeletionPolicy", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"match":      map[string]any{"resources": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}}}},
			"protection": map[string]any{"confirmation": "Required"},
		},
	}}
}

// nothingIsLeft looks through all kinds for what the chart has labelled. The definitions of
// policies stay.
func nothingIsLeft(t *testing.T) {
	t.Helper()
	lists, err := shared.client.Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if !strings.Contains(strings.Join(r.Verbs, " "), "list") || r.Name == "customresourcedefinitions" {
				continue
			}
			found, err := shared.dynamic.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{LabelSelector: labels})
			if err != nil {
				t.Fatalf("list %s: %v", r.Name, err)
			}
			looked++
			for _, o := range found.Items {
				// What the chart's objects own, such as EndpointSlices, is the collector's.
				if o.GetDeletionTimestamp() == nil && len(o.GetOwnerReferences()) == 0 {
					t.Errorf("helm uninstall left %s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
				}
			}
		}
	}
	if looked < 40 {
		t.Errorf("looked at %d kinds only", looked)
	}
}
