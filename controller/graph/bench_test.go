package graph_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/script"
)

// The benchmarks are to be run with -cpu 1: the graph is one goroutine's.
//
//	go test ./controller/graph -run '^$' -bench . -cpu 1

const (
	million     = 1_000_000
	perOwner    = 100
	bigBranches = million / (perOwner + 1)
)

// uuid is a canonical uid: random enough that neighbours are strangers, as real ones are.
func uuid(n uint64) types.UID {
	r := rand.New(rand.NewPCG(n, n^0x9e3779b97f4a7c15))
	hi, lo := r.Uint64(), r.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x",
		hi>>32, hi>>16&0xffff, hi&0xfff, lo>>48&0x3fff|0x8000, lo&0xffffffffffff))
}

// branch is an owner with its dependents, as a list shows them.
func branch(n int) []*graph.Object {
	yes := true
	ns := "namespace-" + strconv.Itoa(n%500)
	owner := &graph.Object{
		Kind: podKind, UID: uuid(uint64(n) << 20), Namespace: ns, Name: "owner-" + strconv.Itoa(n),
		ResourceVersion: strconv.Itoa(1000 + n),
	}
	objects := []*graph.Object{owner}
	for i := range perOwner {
		objects = append(objects, &graph.Object{
			Kind: mapKind, UID: uuid(uint64(n)<<20 + uint64(i) + 1), Namespace: ns, Name: "owner-" + strconv.Itoa(n) + "-" +
				strconv.Itoa(i),
			ResourceVersion: strconv.Itoa(1000 + n + i),
			Owners: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: owner.Name, UID: owner.UID, Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		})
	}
	return objects
}

func emptyGraph() *graph.Graph {
	g := graph.New()
	g.Apply(graph.Serving{Resources: script.Usual()})
	for _, k := range g.Stats().Kinds {
		g.Apply(graph.ListBegins{Kind: k.GroupResource()})
		g.Apply(graph.ListEnds{Kind: k.GroupResource()})
	}
	return g
}

// grown is a graph of so many branches. What was shown to it is not kept by anybody else.
func grown(branches int) *graph.Graph {
	g := emptyGraph()
	for n := range branches {
		for _, o := range branch(n) {
			g.Apply(graph.Observed{Object: o})
		}
	}
	return g
}

var bigGraph = sync.OnceValue(func() *graph.Graph { return grown(bigBranches) })

func perSecond(b *testing.B, events int) {
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkInitialList shows a million objects to an empty graph, dependents after their owners.
func BenchmarkInitialList(b *testing.B) {
	var objects []*graph.Object
	for n := range bigBranches {
		objects = append(objects, branch(n)...)
	}
	runtime.GC()
	events := 0
	for b.Loop() {
		g := emptyGraph()
		g.Apply(graph.ListBegins{Kind: mapKind})
		for _, o := range objects {
			g.Apply(graph.Observed{Object: o})
		}
		g.Apply(graph.ListEnds{Kind: mapKind})
		events += len(objects) + 2
	}
	perSecond(b, events)
}

// BenchmarkHeartbeats changes nothing but resourceVersions, all over a graph of a million.
func BenchmarkHeartbeats(b *testing.B) {
	g := bigGraph()
	var beats []graph.Observed
	for n := 0; n < bigBranches; n += 100 {
		for _, o := range branch(n) {
			o.ResourceVersion = strconv.Itoa(10_000_000 + len(beats))
			beats = append(beats, graph.Observed{Object: o})
		}
	}
	other := make([]graph.Observed, len(beats)) // no version comes twice in a row
	for i := range beats {
		o := *beats[i].Object
		o.ResourceVersion = strconv.Itoa(20_000_000 + i)
		other[i] = graph.Observed{Object: &o}
	}
	runtime.GC()
	events := 0
	for b.Loop() {
		for _, ev := range beats {
			g.Apply(ev)
		}
		for _, ev := range other {
			g.Apply(ev)
		}
		events += 2 * len(beats)
	}
	perSecond(b, events)
}

// BenchmarkChurn lets branches come, go and come again in a graph of a million: owners first, so
// that every dependent is decided about again.
func BenchmarkChurn(b *testing.B) {
	g := bigGraph()
	var come, leave []graph.Event
	for n := bigBranches; n < bigBranches+100; n++ {
		for _, o := range branch(n) {
			come = append(come, graph.Observed{Object: o})
			leave = append(leave, graph.Gone{Kind: o.Kind, UID: o.UID})
		}
	}
	runtime.GC()
	events := 0
	for b.Loop() {
		for _, ev := range come {
			g.Apply(ev)
		}
		for _, ev := range leave {
			g.Apply(ev)
		}
		events += len(come) + len(leave)
	}
	perSecond(b, events)
}

// BenchmarkDecide asks about every object of a million, in the order in which they came.
func BenchmarkDecide(b *testing.B) {
	g := bigGraph()
	uids := script.UIDs(g)
	runtime.GC()
	for i := 0; b.Loop(); i++ {
		g.Decide(uids[i%len(uids)])
	}
}

// BenchmarkSweep ends a list that shows every object of a graph of a million: the price of a relist
// on top of its objects.
func BenchmarkSweep(b *testing.B) {
	g := bigGraph()
	for b.Loop() {
		g.Apply(graph.ListEnds{Kind: podKind})
	}
}

// BenchmarkMemory measures what a million objects take: their names and references, and all that
// leads to them. Uids and versions are not kept as strings, and nothing else is kept at all.
func BenchmarkMemory(b *testing.B) {
	var g *graph.Graph
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		g = grown(bigBranches)
		runtime.GC()
		runtime.ReadMemStats(&after)
	}
	objects := g.Stats().Objects
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(objects), "B/object")
	b.ReportMetric(float64(objects), "objects")
	runtime.KeepAlive(g)
}

// BenchmarkDrainedNamespaces is what draining 200 namespaces of 20 objects asks of the graph: what
// they hold, and that it goes. Beside a million other objects it takes as long as alone.
func BenchmarkDrainedNamespaces(b *testing.B) {
	const namespaces, each = 200, 20
	for _, beside := range []struct {
		name  string
		graph func() *graph.Graph
	}{{"alone", emptyGraph}, {"beside a million", bigGraph}} {
		b.Run(beside.name, func(b *testing.B) {
			g := beside.graph()
			kinds := g.Stats().Kinds
			var come []graph.Event
			for n := range namespaces * each {
				come = append(come, graph.Observed{Object: &graph.Object{
					Kind: mapKind, UID: uuid(uint64(n) | 1<<50), Namespace: "drained-" + strconv.Itoa(n/each), Name: strconv.Itoa(n),
					ResourceVersion: "1",
				}})
			}
			for b.Loop() {
				for _, ev := range come {
					g.Apply(ev)
				}
				for ns := range namespaces {
					name := "drained-" + strconv.Itoa(ns)
					g.Inventory(name)
					found := 0
					for _, k := range kinds { // as a pass looks at each
						for next := uint32(0); ; {
							views, cursor := g.Content(name, k.GroupResource(), next, 1000)
							for _, v := range views {
								g.Apply(graph.Gone{Kind: v.Kind, UID: v.UID})
							}
							found += len(views)
							if next = cursor; next == 0 {
								break
							}
						}
					}
					if found != each {
						b.Fatalf("%d of %d objects found", found, each)
					}
				}
			}
		})
	}
}

// TestContentMissesNothingThatStays: between two pieces others come, go and change.
func TestContentMissesNothingThatStays(t *testing.T) {
	const n = 300
	g := emptyGraph()
	see := func(i int, deleting bool) {
		g.Apply(graph.Observed{Object: &graph.Object{
			Kind: mapKind, UID: uuid(uint64(i)), Namespace: "x", Name: strconv.Itoa(i), ResourceVersion: strconv.Itoa(1 + i),
			Deleting:   deleting,
			Finalizers: []string{"example.com/f"},
		}})
	}
	for i := range n {
		see(i, false)
	}
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	stays := func(i int) bool { return i%3 != 0 }
	seen := map[types.UID]bool{}
	pieces := 0
	for next := uint32(0); ; pieces++ {
		views, cursor := g.Content("x", mapKind, next, 7)
		for _, v := range views {
			seen[v.UID] = true
		}
		if next = cursor; next == 0 {
			break
		}
		for range 5 {
			if i := r.IntN(n); stays(i) {
				see(i, r.IntN(2) == 0)
			} else if r.IntN(2) == 0 {
				g.Apply(graph.Gone{Kind: mapKind, UID: uuid(uint64(i))})
			} else {
				see(i, false)
			}
		}
	}
	for i := range n {
		if stays(i) && !seen[uuid(uint64(i))] {
			t.Errorf("seed %d: object %d was there all the time and is in none of %d pieces", seed, i, pieces)
		}
	}
}

// BenchmarkCascade counts what would be deleted with one of a million objects, with a namespace of
// two thousand, and with an owner of a hundred thousand.
func BenchmarkCascade(b *testing.B) {
	g := bigGraph()
	b.Run("hundred", func(b *testing.B) {
		for b.Loop() {
			if f, ok, _ := g.Cascade(graph.Search{UID: uuid(7 << 20)}, 0); !ok || f[0].Count != perOwner {
				b.Fatal(f, ok)
			}
		}
	})
	b.Run("namespace", func(b *testing.B) {
		for b.Loop() {
			if f, ok := g.Filled("namespace-7"); !ok || len(f) != 2 {
				b.Fatal(f, ok)
			}
		}
	})
	b.Run("instances", func(b *testing.B) {
		for b.Loop() {
			if f, ok := g.Instances(mapKind); !ok || f.Count != bigBranches*perOwner {
				b.Fatal(f, ok)
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		g := emptyGraph()
		g.Apply(graph.Observed{Object: &graph.Object{Kind: schema.GroupResource{Resource: "nodes"}, UID: uuid(1), Name: "n",
			ResourceVersion: "1"}})
		for i := range 100_000 {
			g.Apply(graph.Observed{Object: &graph.Object{
				Kind: mapKind, UID: uuid(uint64(i) + 2), Namespace: "x", Name: strconv.Itoa(i), ResourceVersion: "1",
				Owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: uuid(1)}},
			}})
		}
		for b.Loop() {
			if f, ok, _ := g.Cascade(graph.Search{UID: uuid(1)}, 0); !ok || f[0].Count != 100_000 {
				b.Fatal(f, ok)
			}
		}
	})
}
