package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// finalizer is Weir's.
const finalizer = "weir.dev/propagation"

// armingWindow is that of the tests' webhooks: long enough for a busy machine, and
// shorter than the default, which is a proof and takes its time.
const armingWindow = "10s"

// mode is how weir runs in an enforced cluster.
type mode string

const (
	replace   mode = "replace"
	companion mode = "companion"
)

// enforced are clusters with weir's controller and webhook, one for each mode,
// started when a test first asks for one.
var enforced = map[mode]*enforcedCluster{replace: {}, companion: {}}

type enforcedCluster struct {
	once sync.Once
	cluster
	hook *weir.Process
	err  error
	stop []func()
}

func stopEnforced() {
	for _, e := range enforced {
		for i := len(e.stop) - 1; i >= 0; i-- {
			e.stop[i]()
		}
	}
}

// eachMode runs a test in both modes, at the same time.
func eachMode(t *testing.T, f func(t *testing.T, w *fixture)) {
	inModes(t, []mode{replace, companion}, newEnforced, f)
}

// eachModeAlone is eachMode in clusters of their own, for tests that would hold up those beside
// them, or break their work.
func eachModeAlone(t *testing.T, f func(t *testing.T, w *fixture)) {
	inModes(t, []mode{replace, companion}, newAlone, f)
}

// newAlone is a fixture in a cluster of its own in which weir runs in a mode.
func newAlone(t *testing.T, m mode) *fixture {
	w, _ := newPaired(t, m, planeOf(m))
	return w
}

// inModes runs a test in these modes, in the fixtures that are made for it.
func inModes(
	t *testing.T, modes []mode, made func(*testing.T, mode) *fixture, f func(t *testing.T, w *fixture),
) {
	t.Parallel()
	for _, m := range modes {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			f(t, made(t, m))
		})
	}
}

// newEnforced is a fixture in the cluster of a mode.
func newEnforced(t *testing.T, m mode) *fixture {
	t.Helper()
	enter(t, sharedFixtures)
	e := enforced[m]
	e.once.Do(func() { e.err = e.start(context.WithoutCancel(t.Context()), m) })
	if e.err != nil {
		t.Fatal(e.err)
	}
	w := fixtureIn(t, e.cluster)
	w.hook = e.hook
	return w
}

// lifted are flags of a kube-controller-manager whose collectors are as fast as they can be.
var lifted = []string{"--kube-api-qps=2000", "--kube-api-burst=4000"}

// planeOf are the options of a cluster in which weir runs in a mode.
func planeOf(m mode) plane.Options {
	controllers := plane.WithoutCollectors
	if m == companion {
		controllers = plane.All
	}
	return plane.Options{Controllers: controllers, Scheduler: true, Kwok: true, Audit: true, Out: os.Stderr,
		// The built-in collector orphans twenty objects in a second unless told otherwise, and
		// these tests do thousands.
		ControllerManagerFlags: lifted}
}

func (e *enforcedCluster) start(ctx context.Context, m mode) error {
	p, err := plane.Start(ctx, planeOf(m))
	if err != nil {
		return err
	}
	e.plane = p
	e.stop = append(e.stop, func() { _ = p.Stop() })
	if err := installCRDs(ctx, p); err != nil {
		return err
	}
	pair, err := startPair(ctx, p, m)
	if err != nil {
		return err
	}
	e.weir, e.hook, e.mode = pair.controller, pair.hook, m
	e.stop = append(e.stop, pair.controller.Kill, pair.hook.Kill)
	return nil
}

// pair is a controller and a webhook that know of each other.
type pair struct {
	controller, hook *weir.Process
	url              string
}

// hookUser is who weir's webhook is.
const hookUser = "weir-webhook"

// startPair starts both in a cluster with the CRDs, each with these flags as well.
func startPair(ctx context.Context, p *plane.Plane, m mode, flags ...string) (pair, error) {
	port, err := plane.FreePort()
	if err != nil {
		return pair{}, err
	}
	out := pair{url: fmt.Sprintf("https://localhost:%d", port)}
	kubeconfig, err := identity(ctx, p, hookUser)
	if err != nil {
		return pair{}, err
	}
	if out.hook, err = weir.Start(ctx, hookOptions(p, kubeconfig, "hook", out.url, port, flags...)); err != nil {
		return pair{}, err
	}
	if out.controller, err = startController(ctx, p, m, out.url, flags...); err != nil {
		out.hook.Kill()
	}
	return out, err
}

// newPaired is a cluster of its own with weir's controller and webhook, which may be killed.
func newPaired(t *testing.T, m mode, o plane.Options, flags ...string) (*fixture, pair) {
	t.Helper()
	w := newCluster(t, o)
	if err := installCRDs(t.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	p, err := startPair(context.WithoutCancel(t.Context()), w.plane, m, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.controller.Kill)
	t.Cleanup(p.hook.Kill)
	w.weir, w.hook, w.mode = p.controller, p.hook, m
	return w, p
}

// hookOptions run a webhook that listens at a port of its own, and is called by a URL.
func hookOptions(p *plane.Plane, kubeconfig, name, url string, port int, flags ...string) weir.Options {
	return weir.Options{Binary: shared.binary, Kubeconfig: kubeconfig, Dir: p.Dir, Name: name, Command: "webhook",
		Flags: append([]string{"--webhook-url", url, "--self-users", weirUser + "," + hookUser,
			"--webhook-bind-address", fmt.Sprintf("127.0.0.1:%d", port), "--test-arming-window", armingWindow, "--shutdown-delay", "0s"}, flags...)}
}

// startController starts the controller of webhooks that are called by a URL.
func startController(ctx context.Context, p *plane.Plane, m mode, url string, flags ...string) (*weir.Process, error) {
	kubeconfig, err := identity(ctx, p, weirUser)
	if err != nil {
		return nil, err
	}
	return weir.Start(ctx, controllerOptions(p, m, kubeconfig, "", url, flags...))
}

// controllerOptions run a controller of webhooks that are called by a URL.
func controllerOptions(p *plane.Plane, m mode, kubeconfig, name, url string, flags ...string) weir.Options {
	return weir.Options{Binary: shared.binary, Kubeconfig: kubeconfig, Dir: p.Dir, Name: name,
		Flags: append([]string{"--webhook-url", url, "--self-users", weirUser + "," + hookUser, "--mode", string(m), weir.NoBrake}, flags...)}
}

// installCRDs installs the kinds of policies, and returns when they are served.
func installCRDs(ctx context.Context, p *plane.Plane) error {
	return load.CreateCRDs(ctx, p.Config, "../policies/crds")
}

var policyResources = map[string]schema.GroupVersionResource{
	"DeletionPolicy":       {Group: "weir.dev", Version: "v1beta1", Resource: "deletionpolicies"},
	"OwnerReferencePolicy": {Group: "weir.dev", Version: "v1beta1", Resource: "ownerreferencepolicies"},
	"DrainPolicy":          {Group: "weir.dev", Version: "v1beta1", Resource: "drainpolicies"},
}

// here selects the fixture's namespace.
func (w *fixture) here() string {
	return "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: " + w.namespace + "}}"
}

// policy makes a policy of the rest of a manifest from spec on, in which HERE
// selects the fixture's namespace. It goes with the test, and what it gave the finalizer is let
// go. It returns when weir has it in force and the API server asks.
func (w *fixture) policy(kind, spec string) (name string) {
	w.Helper()
	name = strings.ToLower(kind) + "-" + w.namespace
	w.policyNamed(kind, name, spec)
	w.awaitCondition(kind, name, "Valid", metav1.ConditionTrue)
	return name
}

// policyNamed is policy for several of a kind, and for those that are not to be in force.
func (w *fixture) policyNamed(kind, name, spec string) {
	w.Helper()
	o := &unstructured.Unstructured{}
	text := fmt.Sprintf("apiVersion: weir.dev/v1beta1\nkind: %s\nmetadata: {name: %s}\nspec:\n%s", kind, name, strings.ReplaceAll(spec, "HERE", w.here()))
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		w.Fatalf("%v in\n%s", err, text)
	}
	client := w.dynamic.Resource(policyResources[kind])
	if _, err := client.Create(w.Context(), o, metav1.CreateOptions{}); err != nil {
		w.Fatalf("%v in\n%s", err, text)
	}
	w.Cleanup(func() {
		err := client.Delete(context.WithoutCancel(w.Context()), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			w.Error(err)
		}
	})
}

// awaitCondition waits until a policy says something about itself.
func (w *fixture) awaitCondition(kind, name, condition string, status metav1.ConditionStatus) metav1.Condition {
	w.Helper()
	var found *metav1.Condition
	w.until(fmt.Sprintf("%s %s is %s=%s", kind, name, condition, status), func(ctx context.Context) (bool, error) {
		o, err := w.dynamic.Resource(policyResources[kind]).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		found = meta.FindStatusCondition(conditionsOf(o), condition)
		return found != nil && found.Status == status && found.ObservedGeneration == o.GetGeneration(), nil
	})
	return *found
}

// conditionsOf are those of an object's status.
func conditionsOf(o *unstructured.Unstructured) []metav1.Condition {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	out := make([]metav1.Condition, len(list))
	for i, item := range list {
		one, _ := item.(map[string]any)
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(one, &out[i]) // what it lacks is empty
	}
	return out
}

// awaitFinalizerAdded waits until the API server has the finalizer added to objects of a kind as
// they are made.
func (w *fixture) awaitFinalizerAdded(short string) {
	w.Helper()
	w.until(short+" are stamped", func(ctx context.Context) (bool, error) {
		k := w.kinds[short]
		manifest, err := k.manifest("try", nil, nil)
		if err != nil {
			return false, err
		}
		made, err := w.at(object{kind: k, namespace: w.namespace}).Create(ctx, manifest, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && len(made.GetFinalizers()) > 0, err
	})
}

// kubectl runs kubectl as the administrator, in the fixture's namespace.
func (w *fixture) kubectl(args ...string) (string, error) {
	w.Helper()
	bins, err := plane.Build(w.Context(), os.Stderr, plane.Kubectl)
	if err != nil {
		w.Fatal(err)
	}
	cmd := exec.CommandContext(w.Context(), bins[plane.Kubectl], append([]string{"--kubeconfig", w.plane.Kubeconfig, "-n", w.namespace, "--cache-dir", w.TempDir()}, args...)...)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
	return string(out), err
}

// mustKubectl is kubectl that succeeds.
func (w *fixture) mustKubectl(args ...string) string {
	w.Helper()
	out, err := w.kubectl(args...)
	if err != nil {
		w.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// adopt takes in objects that a controller made, such as a Deployment's pods, and
// returns the names by which the test then knows them.
func (w *fixture) adopt(short string, ours func(*unstructured.Unstructured) bool) []string {
	w.Helper()
	k := w.kinds[short]
	list, err := w.dynamic.Resource(k.gvr()).Namespace(w.namespace).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		if o := &list.Items[i]; ours(o) {
			name := short + "/" + o.GetName()
			w.made[name] = object{kind: k, namespace: w.namespace, name: o.GetName(), uid: o.GetUID()}
			names = append(names, name)
		}
	}
	return names
}

// ownedBy are objects with an owner.
func (w *fixture) ownedBy(owner string) func(*unstructured.Unstructured) bool {
	uid := w.of(owner).uid
	return func(o *unstructured.Unstructured) bool {
		for _, r := range o.GetOwnerReferences() {
			if r.UID == uid {
				return true
			}
		}
		return false
	}
}
