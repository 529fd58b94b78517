package ask

import (
	"context"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/controller/insight"
)

// mostWorkloads bounds how many of a kind are read to tell whether a component runs.
const mostWorkloads = 500

var (
	leaseKind     = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	workloadKinds = []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "apps", Version: "v1", Resource: "statefulsets"},
		{Group: "apps", Version: "v1", Resource: "daemonsets"},
	}
)

// components reads whether components run. It remembers workloads for a while: a page asks about them at each change.
type components struct {
	client dynamic.Interface

	mu        sync.Mutex
	at        time.Time // when the workloads were read; zero: they were not
	workloads []unstructured.Unstructured
	complete  bool
}

// remembered is how long workloads are remembered.
const remembered = 15 * time.Second

// of reads whether the components run that are to take finalizers off. What cannot be read is left out. nil: there is nothing to be
// taken off.
func (c *components) of(ctx context.Context, finalizers []string) *insight.Components {
	if len(finalizers) == 0 {
		return nil
	}
	out := &insight.Components{Leases: map[string]time.Time{}}
	out.Workloads, out.Complete = c.all(ctx)
	for _, f := range finalizers {
		if name := insight.LeaseOf(f); name != "" {
			if renewed, err := renewed(ctx, c.client, name); err == nil {
				out.Leases[name] = renewed
			}
		}
	}
	return out
}

// all are the workloads of the cluster, and whether they are all that there are.
func (c *components) all(ctx context.Context) ([]unstructured.Unstructured, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && time.Since(c.at) < remembered {
		return c.workloads, c.complete
	}
	c.workloads, c.complete = nil, true
	for _, kind := range workloadKinds {
		list, err := c.client.Resource(kind).List(ctx, metav1.ListOptions{Limit: mostWorkloads})
		if err != nil || list.GetContinue() != "" {
			c.complete = false
		}
		if err == nil {
			c.workloads = append(c.workloads, list.Items...)
		}
	}
	c.at = time.Now()
	return c.workloads, c.complete
}

// renewed is when a Lease was renewed last, of several of the name that which was last; zero if there is none. The namespace may be *.
func renewed(ctx context.Context, client dynamic.Interface, lease string) (last time.Time, err error) {
	namespace, name, _ := strings.Cut(lease, "/")
	if namespace == "*" {
		namespace = metav1.NamespaceAll
	}
	list, err := client.Resource(leaseKind).Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	if err != nil {
		return time.Time{}, err
	}
	for i := range list.Items {
		text, _, err := unstructured.NestedString(list.Items[i].Object, "spec", "renewTime")
		if err != nil {
			return time.Time{}, err
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return time.Time{}, err
		}
		if at.After(last) {
			last = at
		}
	}
	return last, nil
}
