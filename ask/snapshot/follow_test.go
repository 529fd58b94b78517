package snapshot

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-dev/weir/ask/insight"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	forbidden  = apierrors.NewForbidden(configMaps.GroupResource(), "", errors.New("you may not"))
)

// served is discovery of kinds that a test changes.
type served struct {
	discovery.DiscoveryInterface
	mu    sync.Mutex
	kinds []metav1.APIResource
	err   error
}

func (s *served) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, nil, s.err
	}
	v := metav1.GroupVersionForDiscovery{GroupVersion: "v1", Version: "v1"}
	return []*metav1.APIGroup{{Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}},
		[]*metav1.APIResourceList{{GroupVersion: "v1", APIResources: s.kinds}}, nil
}

func (s *served) set(err error, kinds ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds, s.err = nil, err
	for _, k := range kinds {
		s.kinds = append(s.kinds, metav1.APIResource{Name: k + "s", Kind: k, Namespaced: k != "namespace", Verbs: metav1.Verbs{"list", "watch", "get", "delete", "patch"}})
	}
}

func object(gvk, namespace, name string, owners ...string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: gvk},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), ResourceVersion: "5"},
	}
	for _, o := range owners {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "configmap", Name: o, UID: types.UID(o)})
	}
	return m
}

// following is a Follower on an API server in memory.
type following struct {
	*testing.T
	*Follower
	client *fake.FakeMetadataClient
	served *served
}

func follow(t *testing.T, objects ...runtime.Object) *following {
	t.Helper()
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := &following{T: t, client: fake.NewSimpleMetadataClient(scheme, objects...), served: &served{}}
	f.served.set(nil, "namespace", "configmap")
	return f
}

func (f *following) start(namespace string) {
	f.Helper()
	f.Follower = newFollower(f.client, &Reader{Discovery: f.served}, namespace)
	if err := f.discover(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.Listed(f.Context())
}

// until waits for what the Follower knows.
func (f *following) until(what string, is func() bool) {
	f.Helper()
	late := time.After(20 * time.Second)
	for {
		_, further := f.Changed()
		if is() {
			return
		}
		select {
		case <-further:
		case <-late:
			f.Fatalf("never came true: %s; it knows %+v", what, f.State())
		}
	}
}

func (f *following) plan(namespace string, uid types.UID) string {
	f.Helper()
	w, err := f.World(namespace)
	if err != nil {
		f.Fatal(err)
	}
	return w.Plan(insight.Deletion{Roots: []types.UID{uid}, Propagation: metav1.DeletePropagationBackground}).Summary()
}

// TestFollowerKnowsWhatIsThere: what comes, changes and goes, in all namespaces or in one.
func TestFollowerKnowsWhatIsThere(t *testing.T) {
	f := follow(t, object("namespace", "", "x"), object("namespace", "", "y"), object("configmap", "x", "boss"), object("configmap", "y", "far"))
	f.start("")
	if s := f.State(); s.Objects != 4 || len(s.Namespaces) != 3 || f.Health().Lost != "" {
		t.Fatalf("it knows %+v, %+v", s, f.Health())
	}
	before, other := f.Version("x"), f.Version("y")
	maps := f.client.Resource(configMaps).Namespace("x").(fake.MetadataClient)
	if _, err := maps.CreateFake(object("configmap", "x", "leaf", "boss"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.until("a leaf", func() bool { return f.State().Objects == 5 })
	if f.Version("x") == before || f.Version("y") != other {
		t.Errorf("versions %d and %d, of before %d and %d: what is in x is nothing to y", f.Version("x"), f.Version("y"), before, other)
	}
	if got, want := f.plan("x", "boss"), "Plan: 2 objects are deleted in 2 steps."; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if found, n := f.Search("lea", 10); n != 1 || found[0].Name != "leaf" {
		t.Errorf("found %v, %d", found, n)
	}
	if _, _, err := f.Find("configmaps", "x", "nobody"); !errors.Is(err, ErrGone) {
		t.Errorf("nobody: %v", err)
	}
	now := f.Version("x")
	leaf := object("configmap", "x", "leaf", "boss")
	leaf.ResourceVersion = "6"
	if _, err := maps.UpdateFake(leaf, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := f.client.Resource(configMaps).Namespace("x").Delete(t.Context(), "boss", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.until("no boss", func() bool { return f.State().Objects == 4 })
	if v := f.Version("x"); v != now+1 {
		t.Errorf("version %d, want %d: a new resourceVersion alone changes no answer", v, now+1)
	}

	one := follow(t, object("namespace", "", "x"), object("configmap", "x", "boss"), object("configmap", "y", "far"))
	one.start("x")
	if _, n := one.Search("far", 10); n != 0 || one.State().Objects != 2 {
		t.Errorf("of one namespace it knows %+v", one.State())
	}
	if got, want := one.plan("", "x"), "Plan: 2 objects are deleted in 2 steps."; got != want {
		t.Errorf("the plan of the namespace: %s, want %s", got, want)
	}
}

// TestFollowerOfOneNamespaceKnowsNothingOfOthers: what is in no namespace may have dependents in
// all of them, and a namespace has content.
func TestFollowerOfOneNamespaceKnowsNothingOfOthers(t *testing.T) {
	ending := object("namespace", "", "ending")
	now := metav1.Now()
	ending.DeletionTimestamp, ending.Finalizers = &now, []string{metav1.FinalizerDeleteDependents}
	boss := []runtime.Object{object("configmap", "x", "boss")}
	owned := object("configmap", "x", "boss")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "namespace", Name: "ending", UID: "ending"}}
	for name, c := range map[string]struct {
		besides []runtime.Object
		of      insight.Object
		partly  bool
	}{
		"an object of it":                     {boss, insight.Object{Kind: "configmaps", Namespace: "x", Name: "boss"}, false},
		"the namespace itself":                {boss, insight.Object{Kind: "namespaces", Name: "x"}, false},
		"another namespace":                   {boss, insight.Object{Kind: "namespaces", Name: "y"}, true},
		"one whose owner may wait for others": {[]runtime.Object{owned, ending}, insight.Object{Kind: "configmaps", Namespace: "x", Name: "boss"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			one := follow(t, append(c.besides, object("namespace", "", "x"), object("namespace", "", "y"), object("configmap", "y", "far"))...)
			one.start("x")
			w, partly, err := one.About(c.of)
			if err != nil {
				t.Fatal(err)
			}
			plan := w.Plan(insight.Deletion{Roots: []types.UID{types.UID(c.of.Name)}, Propagation: metav1.DeletePropagationBackground})
			if (partly != "") != c.partly || plan.Incomplete() != c.partly || len(plan.Items) == 0 {
				t.Errorf("partly %q; %s", partly, plan.Summary())
			}
		})
	}
}

// TestFollowerTellsWhatItDoesNotKnow: a kind that may not be listed, one that breaks, a cluster
// that does not answer, kinds that come and go.
func TestFollowerTellsWhatItDoesNotKnow(t *testing.T) {
	f := follow(t, object("namespace", "", "x"), object("configmap", "x", "boss"))
	denied := true
	var mu sync.Mutex
	refuse := func(clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		if denied {
			return true, nil, forbidden
		}
		return false, nil, nil
	}
	f.client.PrependReactor("list", "configmaps", refuse)
	f.start("")
	if h := f.Health(); h.Denied != 1 || h.Waiting != 0 || h.Lost != "" {
		t.Errorf("health %+v, want one kind that is denied", h)
	}
	w, err := f.World("x")
	if err != nil || len(w.Unread()) != 1 || !w.Unread()[0].Forbidden {
		t.Errorf("unread %v, %v", w.Unread(), err)
	}
	mu.Lock()
	denied = false
	mu.Unlock()
	f.until("config maps that may be listed by now", func() bool { return f.Health().Denied == 0 && f.State().Objects == 2 })

	f.served.set(nil, "namespace", "configmap", "gadget")
	if err := f.discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.until("gadgets", func() bool { return len(f.State().Kinds) == 3 && f.Health().Waiting == 0 })
	f.served.set(errors.New("connection refused"))
	if err := f.discover(t.Context()); err == nil || f.Health().Lost == "" {
		t.Errorf("health %+v, %v: the cluster does not answer", f.Health(), err)
	}
	if f.State().Objects != 2 {
		t.Errorf("it knows %+v: what was there is still known", f.State())
	}
	f.served.set(nil, "namespace", "configmap")
	if err := f.discover(t.Context()); err != nil || f.Health().Lost != "" || len(f.State().Kinds) != 2 {
		t.Errorf("health %+v, %v, kinds %v: gadgets are not served any more", f.Health(), err, f.State().Kinds)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	f.Listed(ended) // does not wait for what cannot come
}

// TestAClusterThatIsLostIsToldOnce: whoever waits for changes is not woken each time when it is
// asked, until it answers otherwise.
func TestAClusterThatIsLostIsToldOnce(t *testing.T) {
	f := follow(t, object("namespace", "", "x"))
	f.start("")
	f.served.set(errors.New("connection refused"))
	was, _ := f.Changed()
	for range 3 {
		if err := f.discover(t.Context()); err == nil {
			t.Fatal("it answers")
		}
	}
	if now, _ := f.Changed(); now != was+1 || f.Health().Lost != "discover the kinds that the cluster serves: connection refused" {
		t.Errorf("%d changes, want one; lost: %q", now-was, f.Health().Lost)
	}
	f.served.set(errors.New("no route"))
	_ = f.discover(t.Context())
	f.served.set(nil, "namespace", "configmap")
	if err := f.discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now, _ := f.Changed(); now != was+3 || f.Health().Lost != "" {
		t.Errorf("%d changes, want three; lost: %q", now-was, f.Health().Lost)
	}
}
