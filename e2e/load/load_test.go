//go:build full

package load_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

// TestMain lets the test binary stand in for weir.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "controller" {
		if err := standIn(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// standIn takes weir's flags and serves what weir does, and collects nothing.
func standIn(args []string) error {
	flags := flag.NewFlagSet("controller", flag.ContinueOnError)
	mode := flags.String("mode", "", "")
	flags.String("kubeconfig", "", "")
	flags.Bool("leader-elect", true, "")
	flags.Duration("canary-time", 0, "")
	flags.Bool("metrics-secure", true, "")
	metrics := flags.String("metrics-bind-address", "", "")
	health := flags.String("health-probe-bind-address", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *mode != "replace" {
		return fmt.Errorf("mode %q", *mode)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	failed := make(chan error, 2)
	for address, text := range map[string]string{*metrics: "# TYPE go_memstats_heap_inuse_bytes gauge\ngo_memstats_heap_inuse_bytes 4096\n", *health: "ok"} {
		server := &http.Server{Addr: address, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, text)
		})}
		go func() { failed <- server.ListenAndServe() }()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func start(t *testing.T) *plane.Plane {
	t.Helper()
	p, err := plane.Start(t.Context(), plane.Options{Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

var configmaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func left(t *testing.T, p *plane.Plane, namespace string) []metav1.PartialObjectMetadata {
	t.Helper()
	client, err := metadata.NewForConfig(p.Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(configmaps).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestLayoutsCountTheirDependents(t *testing.T) {
	for name, test := range map[string]struct {
		layout load.Layout
		want   int
	}{
		"flat":         {load.Flat(5000), 5000},
		"tree":         {load.Tree(5000), 5100},
		"smallest":     {load.Tree(1), 51},
		"custom":       {load.Custom(7), 7},
		"three levels": {load.Layout{Levels: []int{2, 3, 4}}, 2 + 6 + 24},
	} {
		if got := test.layout.Dependents(); got != test.want {
			t.Errorf("%s: %d dependents, want %d", name, got, test.want)
		}
	}
}

func TestFloorSendsTheSameWorkPlainly(t *testing.T) {
	p := start(t)
	cfg, _, err := load.ServiceAccount(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		policy metav1.DeletionPropagation
		left   int
	}{
		"delete":  {metav1.DeletePropagationForeground, 0},
		"release": {metav1.DeletePropagationOrphan, 102},
	} {
		t.Run(name, func(t *testing.T) {
			population, err := load.Populate(t.Context(), p.Config, load.Tree(100))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(left(t, p, population.Namespace)); got != 103 {
				t.Fatalf("%d objects made, want 103", got)
			}
			result, err := load.Measure(t.Context(), p.Config, population, test.policy, func(ctx context.Context) error {
				return load.Floor(ctx, cfg, population, test.policy)
			})
			if err != nil {
				t.Fatal(err)
			}
			if result.Dependents != 102 || result.First <= 0 || result.First > result.Took {
				t.Errorf("result %+v", result)
			}
			objects := left(t, p, population.Namespace)
			if len(objects) != test.left {
				t.Errorf("%d objects left, want %d", len(objects), test.left)
			}
			for _, o := range objects {
				if len(o.OwnerReferences) > 0 {
					t.Errorf("%s still has an owner", o.Name)
				}
			}
			if err := load.Clean(t.Context(), p.Config, population); err != nil {
				t.Fatal(err)
			}
			if got := len(left(t, p, population.Namespace)); got != 0 {
				t.Errorf("%d objects left after cleaning", got)
			}
		})
	}
}

func TestReferenceNeedsTwoRequestsForEachObject(t *testing.T) {
	p := start(t)
	reference := load.Reference(p, "reference", plane.CollectorOnly, "--kube-api-qps=1000", "--kube-api-burst=1000")
	for _, layout := range []load.Layout{load.Flat(100), load.Custom(100)} {
		t.Run(layout.Name, func(t *testing.T) {
			population, err := load.Populate(t.Context(), p.Config, layout)
			if err != nil {
				t.Fatal(err)
			}
			running, awake, err := load.StartAwake(t.Context(), p.Config, reference)
			if err != nil {
				t.Fatal(err)
			}
			if awake <= 0 {
				t.Errorf("awake after %s", awake)
			}
			result, err := load.Cascade(t.Context(), p.Config, p.Metrics, population, metav1.DeletePropagationBackground)
			if err != nil {
				t.Fatal(err)
			}
			if result.Requests["DELETE"] != 100 || result.Requests["GET"] != 100 || result.PerObject() != 2 {
				t.Errorf("requests %v, want one GET and one DELETE for each of 100", result.Requests)
			}
			if result.UnderWay <= 0 || result.UnderWay > 30 { // it has 20 workers
				t.Errorf("%.2f requests under way on average", result.UnderWay)
			}
			if err := running.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// finalizeTerminating is the least of a namespace controller: it sees a namespace
// terminate, and says that it is empty.
func finalizeTerminating(ctx context.Context, client kubernetes.Interface, w watch.Interface) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			ns, ok := e.Object.(*corev1.Namespace)
			if !ok || e.Type == watch.Deleted || ns.DeletionTimestamp == nil || len(ns.Spec.Finalizers) == 0 {
				continue
			}
			ns.Spec.Finalizers = nil
			if _, err := client.CoreV1().Namespaces().Finalize(ctx, ns, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
	}
}

func TestDrainCountsTheSystemsRequestsAlone(t *testing.T) {
	p := start(t)
	client, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := load.Furnish(t.Context(), p.Config, 3, 5, 0)
	if err != nil {
		t.Fatal(err)
	}
	floor, err := load.FloorOfContent(t.Context(), p.Config, batch)
	if err != nil {
		t.Fatal(err)
	}
	if floor.Dependents != 3*7 || floor.Took <= 0 {
		t.Errorf("floor %+v, want 21 objects", floor)
	}
	for _, ns := range batch.Namespaces {
		if got := left(t, p, ns.Name); len(got) > 0 {
			t.Errorf("%d ConfigMaps left in %s", len(got), ns.Name)
		}
	}
	w, err := client.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- finalizeTerminating(t.Context(), client, w) }()
	result, err := load.Drain(t.Context(), p.Config, p.Metrics, batch)
	w.Stop()
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
	// The driver deletes and lists. A GET now and then is the API server's own.
	if r := result.Requests; r["PUT"] != 3 || r["DELETE"]+r["LIST"]+r["PATCH"] != 0 || result.Dependents != 21 {
		t.Errorf("result %+v, want 21 objects, three PUT and nothing that the driver sent", result)
	}
}

func TestRazedNamespacesAreGone(t *testing.T) {
	p := start(t)
	batch, err := load.Furnish(t.Context(), p.Config, 2, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := load.FloorOfContent(t.Context(), p.Config, batch); err != nil {
		t.Fatal(err)
	}
	if err := load.Raze(t.Context(), p.Config, batch); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range batch.Namespaces {
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), ns.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get %s: error %v, want that it is not found", ns.Name, err)
		}
	}
}

// The number of kinds depends on the version: each is listed and deleted at
// least once, and a watch is none of these requests.
func TestReferenceDrainsByTwoRequestsForEachKind(t *testing.T) {
	p := start(t)
	batch, err := load.Furnish(t.Context(), p.Config, 1, 30, 4)
	if err != nil {
		t.Fatal(err)
	}
	running, err := load.StartDraining(t.Context(), p.Config, load.Reference(p, "reference", plane.NamespaceOnly))
	if err != nil {
		t.Fatal(err)
	}
	result, err := load.Drain(t.Context(), p.Config, p.Metrics, batch)
	if err != nil {
		t.Fatal(err)
	}
	if r := result.Requests; r["DELETE"] < 20 || r["LIST"] < r["DELETE"] || r.Total() > 100 || result.Took <= 0 {
		t.Errorf("result %+v", result)
	}
	if err := running.Stop(); err != nil {
		t.Error(err)
	}
}

func TestWeirIsRunAsUsersRunIt(t *testing.T) {
	p := start(t)
	_, kubeconfig, err := load.ServiceAccount(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	running, err := load.Weir(p, self, kubeconfig).Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, err := load.Settle(t.Context(), running, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if f.Heap != 4096 || f.RSS == 0 {
		t.Errorf("footprint %+v, want a heap of 4096 bytes and some memory", f)
	}
	if err := running.Stop(); err != nil {
		t.Error(err)
	}
	if err := running.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}

	if _, err := load.Weir(p, self, kubeconfig, "--no-such-flag").Start(t.Context()); err == nil {
		t.Error("weir started with a flag that it does not know")
	}
}
