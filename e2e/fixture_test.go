package e2e

import (
	"context"
	"maps"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// fixture is a test's part of a cluster: a namespace, and the objects in it by the
// names that the test gave them.
type fixture struct {
	*testing.T
	cluster
	hook      *weir.Process // weir's webhook, in an enforced cluster
	namespace string
	dynamic   dynamic.Interface
	typed     kubernetes.Interface
	kinds     map[string]kind
	made      map[string]object
}

// Gates bound how many tests do something at the same time. A cluster takes two
// processors for some seconds to start, and half a gigabyte.
var (
	sharedFixtures = make(chan struct{}, 4)
	ownClusters    = make(chan struct{}, 4)
)

// enter waits for a place, and gives it back when the test ends. No test waits at
// one gate while holding a place of the other.
func enter(t *testing.T, gate chan struct{}) {
	gate <- struct{}{}
	t.Cleanup(func() { <-gate })
}

// newFixture is a fixture in the cluster that the tests share.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	enter(t, sharedFixtures)
	return fixtureIn(t, shared.cluster)
}

// newCluster is a fixture in a cluster of its own, in which weir does not run yet.
func newCluster(t *testing.T, o plane.Options) *fixture {
	t.Helper()
	enter(t, ownClusters)
	o.Audit, o.Out = true, os.Stderr
	p, err := plane.Start(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return fixtureIn(t, cluster{plane: p})
}

func fixtureIn(t *testing.T, c cluster) *fixture {
	t.Helper()
	w := &fixture{
		T: t, cluster: c,
		kinds: maps.Clone(usual), made: map[string]object{},
	}
	config := rest.CopyConfig(c.plane.Config)
	config.WarningHandler = rest.NoWarnings{} // tests do on purpose what it warns of
	var err error
	if w.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if w.typed, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	w.namespace = w.newNamespace()
	t.Cleanup(w.explain)
	return w
}

// newNamespace makes a namespace whose name says which test it is of. It stays as
// long as the cluster.
func (w *fixture) newNamespace() string {
	w.Helper()
	ns := &unstructured.Unstructured{}
	ns.SetGroupVersionKind(usual["ns"].GroupVersionKind)
	name := strings.ToLower(strings.Map(func(r rune) rune {
		if strings.ContainsRune("/_,'", r) {
			return '-'
		}
		return r
	}, strings.TrimPrefix(w.Name(), "Test")))
	ns.SetGenerateName(name[:min(len(name), 50)] + "-")
	made, err := w.dynamic.Resource(usual["ns"].gvr()).Create(w.Context(), ns, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	// Pods need it, and no controller may be there to make it.
	account := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount"}}
	account.SetName("default")
	accounts := w.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"})
	_, err = accounts.Namespace(made.GetName()).Create(w.Context(), account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}
	return made.GetName()
}

// beside is the same cluster and the same objects, seen from another namespace.
func (w *fixture) beside() *fixture {
	w.Helper()
	other := *w
	other.namespace = w.newNamespace()
	return &other
}

// startWeir runs a weir of the fixture's own.
func (w *fixture) startWeir(flags ...string) {
	w.Helper()
	kubeconfig := w.kubeconfigOf(weirUser)
	w.weir = w.runWeir(weir.Options{Kubeconfig: kubeconfig, Flags: flags})
}

// runWeir starts a weir that the test ends with; what the options leave open is
// filled in.
func (w *fixture) runWeir(o weir.Options) *weir.Process {
	w.Helper()
	o.Binary, o.Dir = shared.binary, w.plane.Dir
	p, err := weir.Start(context.WithoutCancel(w.Context()), o)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		p.Kill()
		if w.Failed() && o.Name != "" { // the test has others, of which explain tells one
			w.tell(p, func(string) bool { return true })
		}
	})
	return p
}

// explain adds to a failed test what weir says about its objects, and about none in particular.
func (w *fixture) explain() {
	if !w.Failed() || w.weir == nil {
		return
	}
	w.tell(w.weir, func(line string) bool {
		return strings.Contains(line, w.namespace) || !strings.Contains(line, `"object":`) && !strings.Contains(line, `"root":`)
	})
}

// tell logs what a process said last of what is to be told.
func (w *fixture) tell(p *weir.Process, about func(line string) bool) {
	text, err := p.Output()
	if err != nil {
		w.Log(err)
	}
	var lines []string
	for line := range strings.Lines(text) {
		if about(line) && !strings.Contains(line, "healthz") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	const most = 60
	w.Logf("%s said %d things about %s, the last of them:\n%s", p.Name, len(lines), w.namespace, strings.Join(lines[max(0, len(lines)-most):], "\n"))
}

// of is an object that the test made.
func (w *fixture) of(name string) object {
	w.Helper()
	o, ok := w.made[name]
	if !ok {
		w.Fatalf("no object %q was made", name)
	}
	return o
}

// at is where objects like this one are.
func (w *fixture) at(o object) dynamic.ResourceInterface {
	r := w.dynamic.Resource(o.gvr())
	if o.cluster {
		return r
	}
	return r.Namespace(o.namespace)
}
