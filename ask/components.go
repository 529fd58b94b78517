package ask

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
)

// mostWorkloads bounds the workloads of a kind that are read to tell whether a component runs.
const mostWorkloads = 500

var workloadKinds = []schema.GroupVersionResource{
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "apps", Version: "v1", Resource: "daemonsets"},
}

// components finds out whether components run. It caches workloads, because a page asks about them
// at each change.
type components struct {
	client dynamic.Interface

	mu        sync.Mutex
	at        time.Time // when the workloads were read; zero: they were not
	workloads []unstructured.Unstructured
	complete  bool
	failed    error // why some kinds could not be read
}

// remembered is how long workloads are cached.
const remembered = 15 * time.Second

// of returns what tells whether the components run that have to remove finalizers; nil if there are
// none. It notes in the World what could not be read.
func (c *components) of(ctx context.Context, w *insight.World, finalizers []string) *insight.Components {
	if len(finalizers) == 0 {
		return nil
	}
	var err error
	out := &insight.Components{}
	if out.Workloads, out.Complete, err = c.all(ctx); err != nil {
		w.Missed("workloads of all namespaces (which tell whether a component runs)", apierrors.IsForbidden(err),
			snapshot.ReasonOf(err))
	}
	return out
}

// all returns the workloads of the cluster, whether they are complete, and why some kinds could not
// be read.
func (c *components) all(ctx context.Context) ([]unstructured.Unstructured, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && time.Since(c.at) < remembered {
		return c.workloads, c.complete, c.failed
	}
	c.workloads, c.complete, c.failed = nil, true, nil
	for _, kind := range workloadKinds {
		list, err := c.client.Resource(kind).List(ctx, metav1.ListOptions{Limit: mostWorkloads})
		if err != nil || list.GetContinue() != "" {
			c.complete = false
		}
		if err == nil {
			c.workloads = append(c.workloads, list.Items...)
		} else if c.failed == nil {
			c.failed = err
		}
	}
	c.at = time.Now()
	if ctx.Err() != nil {
		c.at = time.Time{} // the caller went away: these errors tell the next one nothing
	}
	return c.workloads, c.complete, c.failed
}
