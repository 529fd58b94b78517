package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

const (
	none       metav1.DeletionPropagation = ""
	background                            = metav1.DeletePropagationBackground
	foreground                            = metav1.DeletePropagationForeground
	orphan                                = metav1.DeletePropagationOrphan
)

// patience is how long a test waits for what should take milliseconds: the
// machine may have other things to do.
const (
	patience  = time.Minute
	pollEvery = 30 * time.Millisecond
)

// world is a test's part of a cluster: a namespace, and the objects in it by the
// names that the test gave them.
type world struct {
	*testing.T
	cluster
	namespace string
	dynamic   dynamic.Interface
	typed     kubernetes.Interface
	kinds     map[string]kind
	made      map[string]object
}

// Gates bound how many tests do something at the same time. A cluster takes two
// processors for some seconds to start, and half a gigabyte.
var (
	sharedWorlds = make(chan struct{}, 8)
	ownClusters  = make(chan struct{}, 3)
)

// enter waits for a place, and gives it back when the test ends. Nobody waits at
// one gate while holding a place of the other.
func enter(t *testing.T, gate chan struct{}) {
	gate <- struct{}{}
	t.Cleanup(func() { <-gate })
}

// newWorld is a world in the cluster that the tests share.
func newWorld(t *testing.T) *world {
	t.Helper()
	enter(t, sharedWorlds)
	return worldIn(t, shared.cluster)
}

// newCluster is a world in a cluster of its own, in which weir does not run yet.
func newCluster(t *testing.T, o plane.Options) *world {
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
	return worldIn(t, cluster{plane: p})
}

func worldIn(t *testing.T, c cluster) *world {
	t.Helper()
	w := &world{
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
func (w *world) newNamespace() string {
	w.Helper()
	ns := &unstructured.Unstructured{}
	ns.SetGroupVersionKind(usual["ns"].GroupVersionKind)
	name := strings.ToLower(strings.Map(func(r rune) rune {
		if r == '/' || r == '_' {
			return '-'
		}
		return r
	}, strings.TrimPrefix(w.Name(), "Test")))
	ns.SetGenerateName(name[:min(len(name), 50)] + "-")
	made, err := w.dynamic.Resource(usual["ns"].gvr()).Create(w.Context(), ns, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	// Pods need it, and nobody may be there to make it.
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
func (w *world) beside() *world {
	w.Helper()
	other := *w
	other.namespace = w.newNamespace()
	return &other
}

// startWeir runs a weir of the world's own.
func (w *world) startWeir(flags ...string) {
	w.Helper()
	kubeconfig, err := identity(w.Context(), w.plane, weirUser)
	if err != nil {
		w.Fatal(err)
	}
	w.weir = w.runWeir(weir.Options{Kubeconfig: kubeconfig, Flags: flags})
}

// runWeir starts a weir that the test ends with; what the options leave open is
// filled in.
func (w *world) runWeir(o weir.Options) *weir.Process {
	w.Helper()
	o.Binary, o.Dir = shared.binary, w.plane.Dir
	p, err := weir.Start(context.WithoutCancel(w.Context()), o)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(p.Kill)
	return p
}

// explain adds to a failed test what weir says about its objects.
func (w *world) explain() {
	if !w.Failed() || w.weir == nil {
		return
	}
	text, err := w.weir.Output()
	if err != nil {
		w.Log(err)
	}
	var lines []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, w.namespace) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	const most = 60
	if len(lines) > most {
		w.Logf("weir said %d things about %s, the last of them:", len(lines), w.namespace)
		lines = lines[len(lines)-most:]
	}
	w.Logf("%s\n%s", w.namespace, strings.Join(lines, "\n"))
}

// make makes objects, a line each.
func (w *world) make(lines string) {
	w.Helper()
	for text := range strings.Lines(lines) {
		if strings.TrimSpace(text) == "" {
			continue
		}
		l, err := readLine(text)
		if err != nil {
			w.Fatal(err)
		}
		var owners []metav1.OwnerReference
		for _, word := range l.owners {
			owners = append(owners, w.reference(word))
		}
		w.create(l.kind, l.name, owners, l.finalizers...)
	}
}

// reference is an owner as it is written in owners=(…).
func (w *world) reference(word string) metav1.OwnerReference {
	w.Helper()
	name, set := cutMarks(word)
	r := w.of(name).reference()
	set(&r)
	return r
}

// create makes one object with references as they are.
func (w *world) create(short, name string, owners []metav1.OwnerReference, finalizers ...string) {
	w.Helper()
	k, ok := w.kinds[short]
	if !ok {
		w.Fatalf("no kind %q", short)
	}
	manifest, err := k.manifest(name, owners, finalizers)
	if err != nil {
		w.Fatal(err)
	}
	o := object{kind: k, name: name}
	if !k.cluster {
		o.namespace = w.namespace
	}
	made, err := w.at(o).Create(w.Context(), manifest, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	o.uid = made.GetUID()
	w.made[name] = o
}

// of is an object that the test made.
func (w *world) of(name string) object {
	w.Helper()
	o, ok := w.made[name]
	if !ok {
		w.Fatalf("no object %q was made", name)
	}
	return o
}

// at is where objects like this one are.
func (w *world) at(o object) dynamic.ResourceInterface {
	r := w.dynamic.Resource(o.gvr())
	if o.cluster {
		return r
	}
	return r.Namespace(o.namespace)
}

// delete deletes an object as kubectl would, with a policy; none leaves it to
// its kind's default.
func (w *world) delete(name string, policy metav1.DeletionPropagation) {
	w.Helper()
	options := metav1.DeleteOptions{}
	if policy != none {
		options.PropagationPolicy = &policy
	}
	w.deleteWith(name, options)
}

func (w *world) deleteWith(name string, options metav1.DeleteOptions) {
	w.Helper()
	o := w.of(name)
	options.Preconditions = &metav1.Preconditions{UID: &o.uid}
	if err := w.at(o).Delete(w.Context(), o.name, options); err != nil {
		w.Fatal(err)
	}
}

// patch changes an object by a JSON merge patch.
func (w *world) patch(name, change string) {
	w.Helper()
	o := w.of(name)
	if _, err := w.at(o).Patch(w.Context(), o.name, types.MergePatchType, []byte(change), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

// own gives an object these owners and no others.
func (w *world) own(name string, owners ...string) {
	w.Helper()
	refs := []metav1.OwnerReference{}
	for _, word := range owners {
		refs = append(refs, w.reference(word))
	}
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": refs}})
	if err != nil {
		w.Fatal(err)
	}
	w.patch(name, string(change))
}

// unfinalize takes all finalizers off an object, as whoever put them there does.
func (w *world) unfinalize(names ...string) {
	w.Helper()
	for _, name := range names {
		w.patch(name, `{"metadata":{"finalizers":null}}`)
	}
}

// get reads an object; nil when it is gone, even if another has its name.
func (w *world) get(name string) *unstructured.Unstructured {
	w.Helper()
	o := w.of(name)
	found, err := w.at(o).Get(w.Context(), o.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && found.GetUID() != o.uid {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// owners is how an object's references are written.
func (w *world) owners(name string) string {
	w.Helper()
	o := w.get(name)
	if o == nil {
		return "it is gone"
	}
	return ownersText(o.GetOwnerReferences())
}

// until waits for something in the cluster; what says what.
func (w *world) until(what string, holds func(context.Context) (bool, error)) {
	w.Helper()
	if err := wait.PollUntilContextTimeout(w.Context(), pollEvery, patience, true, holds); err != nil {
		w.Fatalf("wait until %s: %v", what, err)
	}
}

// left are those of the objects that are still there, sorted.
func (w *world) left(ctx context.Context, names []string) ([]string, error) {
	byPlace := map[schema.GroupVersionResource]map[string][]string{}
	for _, name := range names {
		o := w.of(name)
		if byPlace[o.gvr()] == nil {
			byPlace[o.gvr()] = map[string][]string{}
		}
		byPlace[o.gvr()][o.namespace] = append(byPlace[o.gvr()][o.namespace], name)
	}
	var left []string
	for _, places := range byPlace {
		for _, candidates := range places {
			list, err := w.at(w.of(candidates[0])).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // the kind is gone, and all of it
			}
			if err != nil {
				return nil, err
			}
			for _, name := range candidates {
				uid := w.of(name).uid
				if slices.ContainsFunc(list.Items, func(u unstructured.Unstructured) bool { return u.GetUID() == uid }) {
					left = append(left, name)
				}
			}
		}
	}
	slices.Sort(left)
	return left, nil
}

// awaitGone waits until none of the objects is there any more.
func (w *world) awaitGone(names ...string) {
	w.Helper()
	var left []string
	err := wait.PollUntilContextTimeout(w.Context(), pollEvery, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		left, err = w.left(ctx, names)
		return len(left) == 0, err
	})
	if err != nil {
		w.Fatalf("wait until %d objects are gone: %v; still there: %s", len(names), err, strings.Join(left[:min(len(left), 10)], ", "))
	}
}

// awaitOwners waits until an object's references are these and no others.
func (w *world) awaitOwners(name, want string) {
	w.Helper()
	var have string
	err := wait.PollUntilContextTimeout(w.Context(), pollEvery, patience, true, func(context.Context) (bool, error) {
		o := w.get(name)
		if o == nil {
			return false, errors.New("it is gone")
		}
		have = ownersText(o.GetOwnerReferences())
		return have == want, nil
	})
	if err != nil {
		w.Fatalf("wait until the owners of %s are (%s): %v; they are (%s)", name, want, err, have)
	}
}

// awaitFinalizers waits until an object has these finalizers and no others.
func (w *world) awaitFinalizers(name string, want ...string) {
	w.Helper()
	var have []string
	err := wait.PollUntilContextTimeout(w.Context(), pollEvery, patience, true, func(context.Context) (bool, error) {
		o := w.get(name)
		if o == nil {
			return false, errors.New("it is gone")
		}
		have = o.GetFinalizers()
		return slices.Equal(have, want), nil
	})
	if err != nil {
		w.Fatalf("wait until the finalizers of %s are %v: %v; they are %v", name, want, err, have)
	}
}

// awaitTerminating waits until an object is being deleted.
func (w *world) awaitTerminating(name string) {
	w.Helper()
	w.until(name+" is being deleted", func(context.Context) (bool, error) {
		o := w.get(name)
		if o == nil {
			return false, errors.New("it is gone")
		}
		return o.GetDeletionTimestamp() != nil, nil
	})
}

// mustStay settles, and then looks whether the objects are there and alive.
func (w *world) mustStay(names ...string) {
	w.Helper()
	w.settle()
	w.alive(names...)
}

// alive looks whether objects are there and are not being deleted.
func (w *world) alive(names ...string) {
	w.Helper()
	for _, name := range names {
		switch o := w.get(name); {
		case o == nil:
			w.Errorf("%s is gone", name)
		case o.GetDeletionTimestamp() != nil:
			w.Errorf("%s is being deleted", name)
		}
	}
}

// mustBeThere settles, and then looks whether the objects are there, be they
// terminating or not.
func (w *world) mustBeThere(names ...string) {
	w.Helper()
	w.settle()
	left, err := w.left(w.Context(), names)
	if err != nil {
		w.Fatal(err)
	}
	if slices.Sort(names); !slices.Equal(left, names) {
		w.Errorf("of %v there are only %v", names, left)
	}
}

// numbered are n names with a common beginning.
func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return names
}
