//go:build stories

package stories

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: PLURAL, kind: KIND}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// define makes a kind, and removes it at the story's end.
func (s *story) define(plural, group, kind string) {
	s.Helper()
	s.apply(strings.NewReplacer("PLURAL", plural, "GROUP", group, "KIND", kind).Replace(definition))
	name := plural + "." + group
	s.Cleanup(func() {
		if out, err := kubectl(context.WithoutCancel(s.Context()), "delete", "crd", name, "--ignore-not-found", "--timeout=60s"); err != nil {
			s.Error(out)
		}
	})
	s.established(name)
	s.until("the kind is served", func(context.Context) error {
		_, err := s.kubectl("get", name)
		return err
	})
}

// operator is a pod that must take a finalizer off custom resources of its own namespace, with a
// ServiceAccount, a Role and a Secret of that namespace. In Kubernetes' own order, pods first, they
// would stay for ever.
const operator = `apiVersion: v1
kind: ServiceAccount
metadata: {name: operator}
---
apiVersion: v1
kind: Secret
metadata: {name: operator}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: operator}
rules:
- {apiGroups: [rabbitmq.com], resources: [clusters], verbs: [list, update]}
- {apiGroups: [""], resources: [secrets], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: operator}
subjects: [{kind: ServiceAccount, name: operator}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator}
spec:
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec:
      serviceAccountName: operator
      terminationGracePeriodSeconds: 5
      containers:
      - {name: worker, image: WORKER, imagePullPolicy: IfNotPresent, env: [{name: SERVES, value: rabbitmq.com/v1/clusters}, {name: HOSTNAME, value: operator}]}
`

// namespaceDrainsInWaves: the shipped order lets an operator work until its resources are gone,
// then goes its pod, and its permissions last.
func (s *story) namespaceDrainsInWaves() {
	s.weir()
	s.define("clusters", "rabbitmq.com", "Cluster")
	s.apply(operator)
	s.must("rollout", "status", "deployment/operator", "--timeout=60s")
	for i := range 3 {
		s.apply(fmt.Sprintf("apiVersion: rabbitmq.com/v1\nkind: Cluster\nmetadata: {name: c%d, finalizers: [stories.weir.dev/cleanup]}\n", i))
	}
	resources := s.follow("rabbitmq.com", "v1", "clusters")
	pods := s.follow("", "v1", "pods")
	secrets := s.follow("", "v1", "secrets")

	// Weir must have seen the new kind: what it does not know of is in no wave.
	uid := s.must("get", "namespace", s.namespace, "-o", "jsonpath={.metadata.uid}")
	s.until("the namespace's content is known", func(context.Context) error {
		out, err := s.kubectl("delete", "namespace", s.namespace, "--dry-run=server")
		if err == nil || !strings.Contains(out, "3 clusters.rabbitmq.com") {
			return fmt.Errorf("the refusal is %q", out)
		}
		return nil
	})
	s.must("annotate", "namespace", s.namespace, "weir.dev/confirm-delete="+uid)
	s.must("delete", "namespace", s.namespace, "--timeout=2m")

	lastResource, firstPod := resources.last(watch.Deleted), pods.first(terminating)
	lastPod, firstSecret := pods.last(watch.Deleted), secrets.first(watch.Deleted)
	if lastResource == 0 || firstPod == 0 || firstSecret == 0 || lastResource > firstPod || lastPod > firstSecret {
		s.Errorf("at revision %d the last resource was gone, at %d the first pod was told to leave, at %d the last pod was gone and at %d the first Secret: want them in this order",
			lastResource, firstPod, lastPod, firstSecret)
	}
}

// terminating is what becomes of an object that is being deleted and still there.
const terminating watch.EventType = "TERMINATING"

// history is what happened to the objects of a kind, in the order that the API server gave it:
// revisions of its one store.
type history struct {
	*story
	done chan struct{}
	w    watch.Interface

	mu   sync.Mutex
	seen map[watch.EventType][]uint64
}

func (s *story) follow(group, version, resource string) *history {
	s.Helper()
	at := cluster.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}).Namespace(s.namespace)
	w, err := at.Watch(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	h := &history{story: s, w: w, done: make(chan struct{}), seen: map[watch.EventType][]uint64{}}
	s.Cleanup(w.Stop)
	go h.read()
	return h
}

func (h *history) read() {
	defer close(h.done)
	for e := range h.w.ResultChan() {
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		what := e.Type
		if what == watch.Modified && o.GetDeletionTimestamp() != nil {
			what = terminating
		}
		n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
		if err != nil {
			continue // the API server's revisions are numbers
		}
		h.mu.Lock()
		h.seen[what] = append(h.seen[what], n)
		h.mu.Unlock()
	}
}

// settled waits until as many objects are gone as there were: events come a little later than
// kubectl returns.
func (h *history) settled() {
	h.Helper()
	h.until("all deletions are reported", func(context.Context) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if there, gone := len(h.seen[watch.Added]), len(h.seen[watch.Deleted]); there == 0 || gone < there {
			return fmt.Errorf("%d of %d are", gone, there)
		}
		return nil
	})
}

func (h *history) last(what watch.EventType) uint64 {
	h.Helper()
	h.settled()
	h.mu.Lock()
	defer h.mu.Unlock()
	if all := h.seen[what]; len(all) > 0 {
		return all[len(all)-1]
	}
	return 0
}

func (h *history) first(what watch.EventType) uint64 {
	h.Helper()
	h.settled()
	h.mu.Lock()
	defer h.mu.Unlock()
	if all := h.seen[what]; len(all) > 0 {
		return all[0]
	}
	return 0
}
