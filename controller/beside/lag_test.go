package beside

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

// observed is a Lag of a cluster with ConfigMaps.
type observed struct {
	*Lag
	graph    *graph.Graph
	registry *prometheus.Registry
}

func newObserved() *observed {
	o := &observed{graph: graph.New(), registry: prometheus.NewRegistry()}
	o.Lag = NewLag(func(f func(*graph.Graph)) { f(o.graph) }, o.registry)
	o.graph.Apply(graph.Serving{Resources: []graph.Resource{{Version: "v1", Versions: []string{"v1"}, Kind: "ConfigMap", Resource: "configmaps", Namespaced: true, Collected: true}}})
	o.graph.Apply(graph.ListBegins{Kind: kinds.ConfigMaps})
	o.graph.Apply(graph.ListEnds{Kind: kinds.ConfigMaps})
	return o
}

func (o *observed) see(name string, deleting bool, owners ...string) {
	object := &graph.Object{Kind: kinds.ConfigMaps, UID: types.UID(name), Namespace: "shop", Name: name, ResourceVersion: "1", Deleting: deleting}
	for _, owner := range owners {
		object.Owners = append(object.Owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: types.UID(owner)})
	}
	o.Showing(object)
	o.graph.Apply(graph.Observed{Object: object})
}

func (o *observed) gone(name string) {
	o.Going(types.UID(name))
	o.graph.Apply(graph.Gone{Kind: kinds.ConfigMaps, UID: types.UID(name)})
}

// told is how many deletes were observed, the sum of what they took, and for how long garbage stands.
func (o *observed) told(t *testing.T) (n uint64, sum, oldest float64) {
	t.Helper()
	families, err := o.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if h := f.GetMetric()[0].GetHistogram(); h != nil {
			n, sum = h.GetSampleCount(), h.GetSampleSum()
		} else {
			oldest = f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return n, sum, oldest
}

func TestWhatTheBuiltInCollectorTakesIsObserved(t *testing.T) {
	for name, c := range map[string]struct {
		then   func(o *observed)
		n      uint64
		sum    float64
		oldest float64
	}{
		"garbage stands":                        {func(*observed) {}, 0, 0, 5},
		"it goes":                               {func(o *observed) { o.gone("leaf") }, 1, 5, 0},
		"it begins to go":                       {func(o *observed) { o.see("leaf", true, "boss"); time.Sleep(time.Second); o.gone("leaf") }, 1, 5, 0},
		"it is written":                         {func(o *observed) { o.see("leaf", false, "boss") }, 0, 0, 5},
		"it gets another owner":                 {func(o *observed) { o.see("leaf", false, "boss", "lives"); o.gone("leaf") }, 0, 0, 0},
		"its end was not seen":                  {func(o *observed) { o.graph.Apply(graph.Stopped{Kind: kinds.ConfigMaps}) }, 0, 0, 0},
		"the API server's history went back":    {func(o *observed) { o.Rewound() }, 0, 0, 0},
		"what another owner has goes, by hand":  {func(o *observed) { o.gone("shared") }, 0, 0, 5},
		"what is being deleted already is done": {func(o *observed) { o.gone("ending") }, 0, 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newObserved()
				o.see("lives", false)
				o.see("boss", false)
				o.see("leaf", false, "boss")
				o.see("shared", false, "boss", "lives")
				o.see("ending", true, "boss")
				o.gone("boss")
				time.Sleep(5 * time.Second)
				c.then(o)
				if n, sum, oldest := o.told(t); n != c.n || sum != c.sum || oldest != c.oldest {
					t.Errorf("%d deletes, %g s, the oldest for %g s, want %d, %g, %g", n, sum, oldest, c.n, c.sum, c.oldest)
				}
			})
		})
	}
}

func TestWhatAnOwnerLetsGoIsNoGarbage(t *testing.T) {
	o := newObserved()
	object := &graph.Object{Kind: kinds.ConfigMaps, UID: "boss", Namespace: "shop", Name: "boss", ResourceVersion: "1", Deleting: true, Finalizers: []string{metav1.FinalizerOrphanDependents}}
	o.graph.Apply(graph.Observed{Object: object})
	o.see("leaf", false, "boss")
	o.gone("boss")
	if len(o.since) > 0 {
		t.Errorf("%v are watched", o.since)
	}
}

func TestSomeOfManyAreObserved(t *testing.T) {
	o := newObserved()
	for owner := range 100 {
		o.see(fmt.Sprint("boss-", owner), false)
		for leaf := range 30 {
			o.see(fmt.Sprintf("leaf-%d-%d", owner, leaf), false, fmt.Sprint("boss-", owner))
		}
	}
	o.gone("boss-0")
	if len(o.since) != mostOfAnyone {
		t.Errorf("%d of one owner are watched, want %d", len(o.since), mostOfAnyone)
	}
	for owner := range 100 {
		o.gone(fmt.Sprint("boss-", owner))
	}
	if len(o.since) != mostWatched {
		t.Errorf("%d are watched, want %d", len(o.since), mostWatched)
	}
}
