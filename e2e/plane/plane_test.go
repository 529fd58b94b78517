//go:build full

package plane_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-dev/weir/e2e/plane"
)

func start(t *testing.T, opts plane.Options) *plane.Plane {
	t.Helper()
	opts.Out = os.Stderr
	// A cold build takes minutes, and is not what is measured.
	_, err := plane.Build(t.Context(), os.Stderr, plane.APIServer, plane.Etcd,
		plane.ControllerManager, plane.Scheduler, plane.Kwok)
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	p, err := plane.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready in %.1f s", time.Since(started).Seconds())
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestDataSurvivesCrashes(t *testing.T) {
	p := start(t, plane.Options{})
	client := clientFor(t, p)
	for i, part := range []plane.Part{plane.Etcd, plane.APIServer, plane.Etcd} {
		name := fmt.Sprintf("kept-%d", i)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		made, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pid := p.Child(part).Pid()
		if err := p.Crash(t.Context(), part); err != nil {
			t.Fatal(err)
		}
		if p.Child(part).Pid() == pid {
			t.Errorf("%s was not started again", part)
		}
		found, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if found.UID != made.UID || found.ResourceVersion != made.ResourceVersion {
			t.Errorf("after a crash of %s %s is another one", part, name)
		}
	}
	if err := p.Crash(t.Context(), plane.Scheduler); err == nil {
		t.Error("a part that does not run was crashed")
	}
}

func clientFor(t *testing.T, p *plane.Plane) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestDataSurvivesRestartOfAPIServerAndNothingSurvivesStop(t *testing.T) {
	p := start(t, plane.Options{Controllers: plane.CollectorOnly})
	client, ctx := clientFor(t, p), t.Context()
	if _, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	made, err := client.CoreV1().ConfigMaps("default").Create(ctx, cm, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	pid, started := p.Child(plane.APIServer).Pid(), time.Now()
	if err := p.RestartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("restarted in %.1f s", time.Since(started).Seconds())
	if p.Child(plane.APIServer).Pid() == pid {
		t.Error("the API server was not restarted")
	}
	// Through the client of before: its connections died with the server.
	found, err := client.CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if found.UID != made.UID {
		t.Errorf("uid %s, want %s", found.UID, made.UID)
	}

	children := p.Children()
	started = time.Now()
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped in %.1f s", time.Since(started).Seconds())
	if len(children) != 3 {
		t.Errorf("%d children, want 3", len(children))
	}
	for _, c := range children {
		if err := syscall.Kill(c.Pid(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s is still there: %v", c.Name, err)
		}
	}
	if _, err := os.Stat(p.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", p.Dir, err)
	}
}

func TestPlaneStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := plane.Start(ctx, plane.Options{Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for _, c := range p.Children() {
		<-c.Exited()
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

func TestControllersAreSwappedWhileThePlaneRuns(t *testing.T) {
	p := start(t, plane.Options{})
	client, ctx := clientFor(t, p), t.Context()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "doomed"}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Namespaces().Delete(ctx, "doomed", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.StartController(ctx, plane.WithoutCollectors); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Get(ctx, "doomed", metav1.GetOptions{}); err != nil {
		t.Errorf("the namespace went without a namespace controller: %v", err)
	}
	if err := p.StopController(); err != nil {
		t.Fatal(err)
	}
	if err := p.StartController(ctx, plane.NamespaceOnly); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=doomed"})
		return err == nil && len(list.Items) == 0, err
	})
	if err != nil {
		t.Errorf("wait for the namespace to go: %v", err)
	}
}

func TestDeploymentHasRunningPods(t *testing.T) {
	p := start(t, plane.Options{Controllers: plane.WithoutCollectors, Scheduler: true, Kwok: true})
	client, ctx := clientFor(t, p), t.Context()
	replicas, labels := int32(3), map[string]string{"app": "web"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}
	started := time.Now()
	if _, err := client.AppsV1().Deployments("default").Create(ctx, d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return false, err
		}
		running := 0
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning && pod.Spec.NodeName == plane.NodeName {
				running++
			}
		}
		return running == int(replicas), nil
	})
	if err != nil {
		t.Fatalf("wait for %d running pods: %v", replicas, err)
	}
	t.Logf("%d pods running in %.1f s", replicas, time.Since(started).Seconds())
	staysReady(t, client)
}

// staysReady waits until the node's Lease is renewed. Without, kube-controller-manager calls the node not ready after 50 s, and all
// its pods with it, whose readiness no stage gives back.
func staysReady(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	var first *metav1.MicroTime
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		leases, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + plane.NodeName})
		if err != nil || len(leases.Items) == 0 {
			return false, err
		}
		renewed := leases.Items[0].Spec.RenewTime
		if first == nil {
			first = renewed
		}
		return first != nil && renewed.After(first.Time), nil
	})
	if err != nil {
		t.Errorf("wait until the Lease of the node is renewed: %v", err)
	}
}

func TestOtherIdentityMayDoOnlyWhatItIsGranted(t *testing.T) {
	p := start(t, plane.Options{Audit: true})
	cfg, kubeconfig, err := p.UserConfig("system:serviceaccount:default:nobody", "system:serviceaccounts")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kubeconfig); err != nil {
		t.Error(err)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	want := `configmaps is forbidden: User "system:serviceaccount:default:nobody" cannot list resource "configmaps" in API group "" in the namespace "default"`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if info, err := os.Stat(p.AuditLog); err != nil || info.Size() == 0 {
		t.Errorf("no audit log: %v", err)
	}
}

func TestChildThatDiesIsReportedWithItsLastWords(t *testing.T) {
	_, err := plane.Start(t.Context(), plane.Options{
		Out:            os.Stderr,
		APIServerFlags: []string{"--no-such-flag"},
	})
	if err == nil {
		t.Fatal("the plane started")
	}
	if want := "unknown flag: --no-such-flag"; !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want it to quote %q", err, want)
	}
}
