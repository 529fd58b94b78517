// Package clustertest is a cluster in memory in which whole Controllers run, for tests of what they
// do together: an API server that serves the kinds it is told to, namespaces that end as the real
// ones do, and a clock that stands still until all have settled.
//
// Each Controller runs on goroutines that end with its test. One lock guards what the API server is
// told to do.
package clustertest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/weir-dev/weir/controller"
	"github.com/weir-dev/weir/controller/namespaces"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies/live"
)

// Cluster is a cluster in memory in which a whole Controller runs, on the clock of
// testing/synctest: discovery, watches, collector and drainer.
type Cluster struct {
	*testing.T
	API     *apitest.Server
	Servers int                // how many API servers there are
	Ahead   time.Duration      // their clock, of ours
	Options controller.Options // of the Controllers that run

	mu       sync.Mutex
	kinds    map[string][]metav1.APIResource // by group version
	answer   func(apitest.Request) *apitest.Reply
	requests []apitest.Request
	events   []string
}

// AllVerbs is what can be done with most kinds.
var AllVerbs = metav1.Verbs{"delete", "deletecollection", "get", "list", "patch", "watch"}

// Run runs a test in a cluster with some usual kinds, before anything runs in it.
func Run(t *testing.T, test func(c *Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &Cluster{T: t, API: apitest.New(), Servers: 1, kinds: map[string][]metav1.APIResource{}}
		c.Serve("v1", "namespaces", "Namespace", false, AllVerbs)
		c.Serve("v1", "pods", "Pod", true, AllVerbs)
		c.Serve("v1", "configmaps", "ConfigMap", true, AllVerbs)
		for _, kind := range []string{"Mutating", "Validating"} {
			c.Serve("admissionregistration.k8s.io/v1", strings.ToLower(kind)+"webhookconfigurations",
				kind+"WebhookConfiguration", false, AllVerbs)
		}
		c.API.Intercept(c.intercept)
		test(c)
	})
}

// Serve adds a kind to discovery.
func (c *Cluster) Serve(gv, resource, kind string, namespaced bool, verbs metav1.Verbs) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[gv] = append(c.kinds[gv], metav1.APIResource{Name: resource, Kind: kind, Namespaced: namespaced, Verbs: verbs})
}

// Start runs a Controller, and returns when it leads and has seen everything. stop kills it.
func (c *Cluster) Start() (stop func()) {
	c.Helper()
	lead, stop := c.replica()
	lead()
	c.Pass(5 * time.Second)
	return stop
}

// Follow runs a Controller that follows, until it is to lead.
func (c *Cluster) Follow() (lead func()) {
	c.Helper()
	lead, _ = c.replica()
	return lead
}

func (c *Cluster) replica() (lead, stop func()) {
	c.Helper()
	o := c.Options
	o.ArchiveBytes = cmp.Or(o.ArchiveBytes, 64<<20)
	o.Config, o.Namespaces, o.Log = c.API.Config(), namespaces.DefaultNamespaceSyncs, testr.New(c.T)
	o.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return fixture.Tripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil {
				resp.Header.Set("Date", c.Now().UTC().Format(http.TimeFormat))
			}
			return resp, err
		})
	})
	ctrl, err := controller.New(o)
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.Context())
	var wg sync.WaitGroup
	run := func(f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil {
				c.Error(err)
			}
		})
	}
	run(ctrl.Follow)
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	c.Cleanup(stop)
	return func() { run(ctrl.Lead) }, stop
}

// Now is what the time is for the API servers.
func (c *Cluster) Now() time.Time { return time.Now().Add(c.Ahead) }

// Obey runs the policies that the Controllers go by, beginning with these DrainPolicies.
func (c *Cluster) Obey(policies ...string) {
	c.Helper()
	for _, p := range policies {
		c.API.Put("drainpolicies", p)
	}
	state, err := live.New(live.Options{Config: c.API.Config()})
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.Context())
	var wg sync.WaitGroup
	changed := state.Changed()
	wg.Go(func() {
		if err := state.Run(ctx); err != nil {
			c.Error(err)
		}
	})
	<-changed
	c.Options.Policies = state
	c.Cleanup(func() { cancel(); wg.Wait() })
}

// Pass lets time pass, and everything be done that is to be done by then.
func (c *Cluster) Pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Reply answers from here on what f does not return nil for.
func (c *Cluster) Reply(f func(apitest.Request) *apitest.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = f
}

func (c *Cluster) intercept(r apitest.Request) *apitest.Reply {
	c.mu.Lock()
	c.requests = append(c.requests, r)
	answer := c.answer
	c.mu.Unlock()
	if answer != nil {
		if reply := answer(r); reply != nil {
			return reply
		}
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.Path, "/api/v1/namespaces/"), "/")
	switch {
	case r.Method == http.MethodPut && (rest == "finalize" || rest == "status"):
		return c.putNamespace(name, rest, r.Body)
	case r.Method == http.MethodPatch && strings.HasPrefix(r.Path, "/api/v1/namespaces/") && rest == "":
		return c.Annotate(name, r.Body)
	case r.Method == http.MethodPost && rest == "events":
		var e corev1.Event
		if err := decodeBody(r.Body, &e); err != nil {
			return apitest.Refuse(400, "BadRequest", err.Error())
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = append(c.events, fmt.Sprintf("%s %s: %s", e.InvolvedObject.Name, e.Reason, e.Message))
		return &apitest.Reply{Code: 201, Body: e}
	case strings.HasSuffix(r.Path, "/leases"): // there is one API server
		return &apitest.Reply{Code: 200, Body: coordinationv1.LeaseList{
			TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "LeaseList"}, Items: make([]coordinationv1.Lease, c.Servers)}}
	case r.Method == http.MethodGet:
		return c.discovery(r.Path)
	}
	return nil
}

// discovery answers what kinds there are; nil if it was not that which was asked.
func (c *Cluster) discovery(path string) *apitest.Reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch path {
	case "/api":
		return &apitest.Reply{Code: 200, Body: metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}}
	case "/apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
		for gv := range c.kinds {
			if group, version, ok := strings.Cut(gv, "/"); ok {
				v := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
				list.Groups = append(list.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
			}
		}
		return &apitest.Reply{Code: 200, Body: list}
	}
	gv, ok := strings.CutPrefix(path, "/apis/")
	if !ok {
		gv = strings.TrimPrefix(path, "/api/")
	}
	if c.kinds[gv] == nil {
		return nil
	}
	return &apitest.Reply{Code: 200, Body: metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv, APIResources: slices.Clone(c.kinds[gv])}}
}

// putNamespace is an update of a namespace's subresource.
func (c *Cluster) putNamespace(name, subresource, body string) *apitest.Reply {
	var put, now corev1.Namespace
	if err := decodeBody(body, &put); err != nil {
		return apitest.Refuse(400, "BadRequest", err.Error())
	}
	if !c.Namespace(name, &now) {
		return Missing("namespaces", name)
	}
	if put.ResourceVersion != "" && put.ResourceVersion != now.ResourceVersion || put.UID != "" && put.UID != now.UID {
		return apitest.Refuse(409, "Conflict", "it has changed")
	}
	if subresource == "status" {
		now.Status = put.Status
	} else {
		now.Spec.Finalizers = put.Spec.Finalizers
	}
	if now.DeletionTimestamp != nil && len(now.Spec.Finalizers)+len(now.Finalizers) == 0 {
		c.API.Remove("namespaces/" + name)
		return &apitest.Reply{Code: 200, Body: now}
	}
	c.Put("namespaces", now)
	c.Namespace(name, &now)
	return &apitest.Reply{Code: 200, Body: now}
}

// Annotate is a patch of a namespace's annotations: the server in memory knows nothing of
// spec.finalizers, and would take a namespace without others away.
func (c *Cluster) Annotate(name, body string) *apitest.Reply {
	var patch metav1.PartialObjectMetadata
	var now corev1.Namespace
	if err := json.Unmarshal([]byte(body), &patch); err != nil {
		return apitest.Refuse(400, "BadRequest", err.Error())
	}
	switch {
	case !c.Namespace(name, &now):
		return Missing("namespaces", name)
	case patch.UID != "" && patch.UID != now.UID:
		return apitest.Refuse(409, "Conflict", "it has changed")
	}
	if now.Annotations == nil {
		now.Annotations = map[string]string{}
	}
	maps.Copy(now.Annotations, patch.Annotations)
	c.Put("namespaces", now)
	c.Namespace(name, &now)
	return &apitest.Reply{Code: 200, Body: now}
}

// decodeBody reads a body in whatever encoding a typed client chose.
func decodeBody(body string, into runtime.Object) error {
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(body), nil, into)
	return err
}

// Put writes an object, as a client would.
func (c *Cluster) Put(resource string, o any) {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // a type of Kubernetes
	}
	c.API.Put(resource, string(text))
}

// Namespace reads a namespace as it is now.
func (c *Cluster) Namespace(name string, into *corev1.Namespace) bool {
	o := c.API.Get("namespaces/" + name)
	if o == nil {
		return false
	}
	text, err := json.Marshal(o)
	if err == nil {
		*into = corev1.Namespace{}
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		panic(err) // it came from there
	}
	return true
}

// Found makes a namespace, with a uid of its own.
func (c *Cluster) Found(name string, uid types.UID) {
	c.Put("namespaces", corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, CreationTimestamp: metav1.Now()},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
	})
}

// End deletes a namespace, as the API server does it.
func (c *Cluster) End(name string) {
	c.Helper()
	var ns corev1.Namespace
	if !c.Namespace(name, &ns) {
		c.Fatalf("there is no namespace %s", name)
	}
	ns.DeletionTimestamp, ns.Status.Phase = new(metav1.NewTime(c.Now())), corev1.NamespaceTerminating
	c.Put("namespaces", ns)
}

// Fill makes objects of a namespaced kind.
func (c *Cluster) Fill(apiVersion, resource, kind, namespace string, names ...string) {
	for _, name := range names {
		c.Put(resource, metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.Now()}})
	}
}

// Condition is a condition of a namespace as STATUS REASON: MESSAGE.
func (c *Cluster) Condition(name string, t corev1.NamespaceConditionType) string {
	var ns corev1.Namespace
	if !c.Namespace(name, &ns) {
		return "there is no such namespace"
	}
	for _, have := range ns.Status.Conditions {
		if have.Type == t {
			return fmt.Sprintf("%s %s: %s", have.Status, have.Reason, have.Message)
		}
	}
	return "there is no such condition"
}

// MustBeGone fails the test for each object that is there: RESOURCE.GROUP/NAMESPACE/NAME.
func (c *Cluster) MustBeGone(keys ...string) {
	c.Helper()
	for _, key := range keys {
		if c.API.Get(key) != nil {
			c.Errorf("%s is still there", key)
		}
	}
}

// MustBeThere fails the test for each object that is not there.
func (c *Cluster) MustBeThere(keys ...string) {
	c.Helper()
	for _, key := range keys {
		if c.API.Get(key) == nil {
			c.Errorf("%s is gone", key)
		}
	}
}

// Asked are the requests since the last call that contain a text.
func (c *Cluster) Asked(text string) []string {
	var out []string
	for _, r := range c.Sent() {
		if s := strings.TrimSpace(r.Method + " " + r.Path + " " + r.Query); strings.Contains(s, text) {
			out = append(out, s)
		}
	}
	return out
}

// Sent are the requests since the last call.
func (c *Cluster) Sent() []apitest.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.requests
	c.requests = nil
	return out
}

// Reported are the Events that contain a text.
func (c *Cluster) Reported(text string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.events), func(e string) bool { return !strings.Contains(e, text) })
}

// Missing is how an API server says that there is no such object of a core kind.
func Missing(resource, name string) *apitest.Reply {
	return &apitest.Reply{Code: 404, Body: metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("%s %q not found", resource, name), Details: &metav1.StatusDetails{Name: name, Kind: resource}}}
}

// Hold makes a ConfigMap that another controller's finalizer holds.
func (c *Cluster) Hold(namespace, name string) {
	c.API.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: %s, finalizers: [example.com/hold]}}", namespace, name))
}
