package compare

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// compared is a comparer in a test, and what it counted.
type compared struct {
	*Comparer
	registry *prometheus.Registry
}

// comparing follows ConfigMaps and Secrets of an API server, and returns what compares them, when
// the graph is filled. It ends with the test.
func comparing(t *testing.T, api *apitest.Server) compared {
	t.Helper()
	config := api.Config()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	s := follow.NewStore()
	r, err := request.New(config, httpClient, request.NewLimiter(4), &follow.History{}, registry)
	if err != nil {
		t.Fatal(err)
	}
	w := follow.NewWatcher(nil, meta, s, nil, logr.Discard(), registry)
	w.Listen(follow.Listener{Served: r.Serve})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); w.Wait() })
	w.Follow(ctx, fixture.TwoKinds)
	synctest.Wait()
	return compared{New(w, r, s, time.Hour, logr.Discard(), registry), registry}
}

// begin compares until the test ends.
func (c compared) begin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func (c compared) faults(t *testing.T) map[string]float64 {
	t.Helper()
	return fixture.Counts(t, c.registry, "weir_graph_faults_total")
}

// objects is what the graph has, one line an object.
func (c compared) objects() (lines []string) {
	for _, v := range c.store.Views() {
		line := v.Ref.String()
		if v.Deleting {
			line += " deleting"
		}
		for _, f := range v.Finalizers {
			line += " " + f
		}
		for _, o := range v.Owners {
			line += " <- " + o.Name
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// TestComparisonFindsAndRepairsWhatTheWatchDidNotShow breaks the graph behind the back of its
// watches.
func TestComparisonFindsAndRepairsWhatTheWatchDidNotShow(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(compared)
		want   map[string]float64
	}{
		"nothing": {func(compared) {}, map[string]float64{}},
		"an object that is not there": {func(c compared) {
			c.store.Apply(graph.Observed{Object: &graph.Object{Kind: fixture.ConfigMaps, UID: "nobody", Namespace: "shop", Name: "nobody", ResourceVersion: "2"}})
		}, map[string]float64{"configmaps ghost": 1}},
		"an object under the name of another": {func(c compared) {
			c.store.Apply(graph.Observed{Object: &graph.Object{Kind: fixture.ConfigMaps, UID: "nobody", Namespace: "shop", Name: "plain", ResourceVersion: "2"}})
		}, map[string]float64{"configmaps ghost": 1}},
		"an object that is lost": {func(c compared) {
			c.store.Apply(graph.Gone{Kind: fixture.ConfigMaps, UID: fixture.UIDOf("owned")})
		}, map[string]float64{"configmaps missing": 1}},
		"an object as it was before": {func(c compared) {
			c.store.Apply(graph.Observed{Object: &graph.Object{Kind: fixture.ConfigMaps, UID: fixture.UIDOf("changed"), Namespace: "shop", Name: "changed", ResourceVersion: "2"}})
		}, map[string]float64{"configmaps outdated": 1}},
		"an object that is another under the same version": {func(c compared) {
			version, _ := graphVersion(c, fixture.UIDOf("plain"))
			c.store.Apply(graph.Observed{Object: &graph.Object{Kind: fixture.ConfigMaps, UID: fixture.UIDOf("plain"), Namespace: "shop", Name: "plain", ResourceVersion: version,
				Owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}}}})
		}, map[string]float64{"configmaps outdated": 1}},
		"several, of two kinds": {func(c compared) {
			c.store.Apply(graph.Gone{Kind: fixture.ConfigMaps, UID: fixture.UIDOf("owned")}, graph.Gone{Kind: fixture.Secrets, UID: fixture.UIDOf("quiet")},
				graph.Observed{Object: &graph.Object{Kind: fixture.Secrets, UID: "nobody", Namespace: "shop", Name: "nobody", ResourceVersion: "2"}})
		}, map[string]float64{"configmaps missing": 1, "secrets missing": 1, "secrets ghost": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.New()
				fixture.PutConfigMap(api, "plain", "")
				fixture.PutConfigMap(api, "owned", ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: plain, uid: uid-plain}]")
				fixture.PutConfigMap(api, "changed", "")
				fixture.PutConfigMap(api, "changed", ", finalizers: [a.example/b]")
				api.Put("secrets", "{apiVersion: v1, kind: Secret, metadata: {name: quiet, namespace: shop}}")
				g := comparing(t, api)
				want := g.objects()
				if len(want) != 4 {
					t.Fatalf("the graph has %v", want)
				}
				c.damage(g)
				if diff := cmp.Diff(want, g.objects()); (diff == "") != (len(c.want) == 0) && name != "an object as it was before" {
					t.Fatalf("the damage is not what it should be:\n%s", diff)
				}
				g.begin(t)
				<-time.After(g.every + 2*passTime)
				if diff := cmp.Diff(c.want, g.faults(t)); diff != "" || g.Faults() != sum(c.want) {
					t.Errorf("%d faults (-want +found):\n%s", g.Faults(), diff)
				}
				if diff := cmp.Diff(want, g.objects()); diff != "" {
					t.Errorf("the graph afterwards (-want +have):\n%s", diff)
				}
				<-time.After(g.every)
				if diff := cmp.Diff(c.want, g.faults(t)); diff != "" {
					t.Errorf("faults after the next turn (-want +found):\n%s", diff)
				}
			})
		})
	}
}

func sum(counts map[string]float64) (n int) {
	for _, count := range counts {
		n += int(count)
	}
	return n
}

func graphVersion(c compared, uid types.UID) (string, bool) {
	h := c.held(graph.Ref{Kind: fixture.ConfigMaps, UID: uid})
	return h.version, h.known
}

// TestComparisonHasNoFalseAlarms compares without a pause while objects come, change and go, more
// of them than fit into a page. Watches that broke, and lists that had to be made again, are no
// faults either.
func TestComparisonHasNoFalseAlarms(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		const n, steps = 3 * comparePage / 2, 2000
		for i := range n {
			fixture.PutConfigMap(api, fmt.Sprint("c", i), "")
		}
		c := comparing(t, api)
		c.every = 2 * time.Second
		c.begin(t)
		random := rand.New(rand.NewPCG(seed, 0))
		for step := range steps {
			name := fmt.Sprint("c", random.IntN(n))
			switch random.IntN(3) {
			case 0:
				api.Remove("configmaps/shop/" + name)
			case 1:
				fixture.PutConfigMap(api, name, fmt.Sprintf(", uid: %s-%d, labels: {step: '%d'}", name, step, step))
			default:
				fixture.PutConfigMap(api, name, fmt.Sprintf(", uid: %s-%d, finalizers: [a.example/%d]", name, step, step%7))
			}
			if random.IntN(200) == 0 {
				api.Cut()
			}
			if random.IntN(4) == 0 {
				<-time.After(time.Duration(random.IntN(200)) * time.Millisecond)
			}
		}
		if found := c.faults(t); len(found) > 0 {
			t.Errorf("found %v", found)
		}
		results := fixture.Counts(t, c.registry, "weir_graph_comparisons_total")
		t.Logf("%d changes, comparisons: %v", steps, results)
		if results["equal"] < 5 {
			t.Errorf("too few comparisons: %v", results)
		}
	})
}

// TestWatchThatIsLateIsNoFault: what it has not shown yet is not wrong.
func TestWatchThatIsLateIsNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		fixture.PutConfigMap(api, "stays", "")
		fixture.PutConfigMap(api, "goes", "")
		c := comparing(t, api)
		c.every = time.Minute
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			if !strings.HasSuffix(r.Query, fmt.Sprintf("limit=%d", comparePage)) { // that is the comparison's
				return apitest.Refuse(500, "InternalError", "the watch is broken")
			}
			return nil
		})
		api.Cut()
		synctest.Wait()
		api.Remove("configmaps/shop/goes")
		fixture.PutConfigMap(api, "stays", ", finalizers: [a.example/b]")
		fixture.PutConfigMap(api, "comes", "")
		c.begin(t)
		<-time.After(10 * time.Minute)
		if found := c.faults(t); len(found) > 0 {
			t.Errorf("found %v", found)
		}
		if results := fixture.Counts(t, c.registry, "weir_graph_comparisons_total"); results["skipped"] == 0 {
			t.Errorf("the watch is not broken: %v", results)
		}
	})
}

// TestComparisonRepairsAnyNumberOfFaults: more than are looked into at once, within one turn.
func TestComparisonRepairsAnyNumberOfFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		c := comparing(t, api)
		const n = 2*mostSuspects + 100
		for i := range n {
			c.store.Apply(graph.Observed{Object: &graph.Object{
				Kind: fixture.ConfigMaps, UID: types.UID(fmt.Sprint("nobody-", i)), Namespace: "shop", Name: fmt.Sprint("nobody-", i), ResourceVersion: "1"}})
		}
		c.begin(t)
		<-time.After(c.every/2 + mostSuspects*comparePause*3 + passTime)
		if diff := cmp.Diff(map[string]float64{"configmaps ghost": n}, c.faults(t)); diff != "" {
			t.Errorf("faults (-want +found):\n%s", diff)
		}
		if have := c.objects(); len(have) > 0 {
			t.Errorf("%d objects are left", len(have))
		}
	})
}

// TestComparisonThatCannotReadChangesNothing: an answer that is none proves nothing.
func TestComparisonThatCannotReadChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		fixture.PutConfigMap(api, "lost", "")
		c := comparing(t, api)
		c.store.Apply(graph.Gone{Kind: fixture.ConfigMaps, UID: fixture.UIDOf("lost")},
			graph.Observed{Object: &graph.Object{Kind: fixture.Secrets, UID: "nobody", Namespace: "shop", Name: "nobody", ResourceVersion: "1"}})
		damaged := c.objects()
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/lost") || strings.HasSuffix(r.Path, "/nobody") {
				return apitest.Refuse(404, "NotFound", "the server could not find the requested resource")
			}
			return nil
		})
		c.begin(t)
		<-time.After(2 * c.every)
		if found := c.faults(t); len(found) > 0 {
			t.Errorf("found %v", found)
		}
		if diff := cmp.Diff(damaged, c.objects()); diff != "" {
			t.Errorf("the graph (-before +after):\n%s", diff)
		}
	})
}

// TestComparisonCostsOneListAPageAndTurn: nothing is read but the pages, if nothing is wrong.
func TestComparisonCostsOneListAPageAndTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		for i := range 2*comparePage + 1 {
			fixture.PutConfigMap(api, fmt.Sprint("c", i), "")
		}
		c := comparing(t, api)
		var mu sync.Mutex
		lists := map[string]int{}
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			if !strings.Contains(r.Query, "watch=") {
				mu.Lock()
				defer mu.Unlock()
				lists[r.Path]++
			}
			return nil
		})
		c.begin(t)
		<-time.After(c.every + time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(map[string]int{"/api/v1/configmaps": 3, "/api/v1/secrets": 1}, lists); diff != "" {
			t.Errorf("requests within one turn (-want +have):\n%s", diff)
		}
	})
}

// TestKindThatWasNeverListedIsNotCompared: all of it would be missing.
func TestKindThatWasNeverListedIsNotCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		fixture.PutConfigMap(api, "there", "")
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			if strings.HasPrefix(r.Path, "/api/v1/configmaps") && r.Query != "limit=500" { // that is the comparison's
				return apitest.Refuse(500, "InternalError", "no list")
			}
			return nil
		})
		c := comparing(t, api)
		c.begin(t)
		<-time.After(2*c.every + time.Minute)
		if found := c.faults(t); len(found) > 0 {
			t.Errorf("found %v", found)
		}
		if diff := cmp.Diff(map[string]float64{"equal": 2, "skipped": 2}, fixture.Counts(t, c.registry, "weir_graph_comparisons_total")); diff != "" {
			t.Errorf("comparisons of Secrets and of ConfigMaps (-want +have):\n%s", diff)
		}
	})
}

// TestComparisonThatIsOffAsksNothing: with 0 there is no comparison, and what is wrong stays so.
func TestComparisonThatIsOffAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		c := comparing(t, api)
		c.every = 0
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			if strings.Contains(r.Query, "limit=") {
				t.Errorf("asked for %s?%s", r.Path, r.Query)
			}
			return nil
		})
		c.Run(t.Context()) // it returns at once: nothing in here ends it
		if found := fixture.Counts(t, c.registry, "weir_graph_comparisons_total"); len(found) > 0 {
			t.Errorf("comparisons: %v", found)
		}
	})
}

// TestListThatBreaksOffIsNotHeldAgainstTheGraph: of a list whose second page is not to be had, the
// API server has forgotten it or does not answer, all objects of that page would be ghosts. It says
// nothing, is counted as skipped, and the next turn compares all.
func TestListThatBreaksOffIsNotHeldAgainstTheGraph(t *testing.T) {
	for name, reply := range map[string]*apitest.Reply{
		"forgotten":  apitest.Refuse(410, "Expired", "the provided continue parameter is too old"),
		"no answer":  apitest.Refuse(500, "InternalError", "etcdserver: request timed out"),
		"endless":    {Code: 200, Body: map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": map[string]any{"resourceVersion": "9", "continue": "again"}}},
		"not served": apitest.Refuse(404, "NotFound", "the server could not find the requested resource"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.New()
				for i := range comparePage + 1 {
					fixture.PutConfigMap(api, fmt.Sprint("c", i), "")
				}
				c := comparing(t, api)
				before := c.objects()
				var breaks atomic.Bool
				breaks.Store(true)
				api.Intercept(func(r apitest.Request) *apitest.Reply {
					if strings.Contains(r.Query, "continue=") && breaks.Load() {
						return reply
					}
					return nil
				})
				c.begin(t)
				<-time.After(c.every + passTime)
				if diff := cmp.Diff(map[string]float64{"equal": 1, "skipped": 1}, fixture.Counts(t, c.registry, "weir_graph_comparisons_total")); diff != "" {
					t.Errorf("comparisons of Secrets and of ConfigMaps (-want +have):\n%s", diff)
				}
				breaks.Store(false)
				<-time.After(c.every)
				if diff := cmp.Diff(map[string]float64{"equal": 3, "skipped": 1}, fixture.Counts(t, c.registry, "weir_graph_comparisons_total")); diff != "" {
					t.Errorf("comparisons with the next turn (-want +have):\n%s", diff)
				}
				if found := c.faults(t); len(found) > 0 || !slices.Equal(before, c.objects()) {
					t.Errorf("found %v", found)
				}
			})
		})
	}
}
