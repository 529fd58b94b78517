package graph_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

var scale = flag.String("scale", "10000", "sizes of the graphs to measure, in objects, with commas between them")

// scaleBatch is how many branches are made before they are shown, so that what it takes to make
// them is not measured.
const scaleBatch = 100

// TestScale measures graphs of several sizes, and prints a row for each. What a cascade deletes,
// and how many objects there are, it checks; a small graph tells nothing of memory.
//
//	go test ./controller/graph -run TestScale -v -timeout 0 -args -scale=100000,1000000,10000000
func TestScale(t *testing.T) {
	var rows strings.Builder
	for size := range strings.SplitSeq(*scale, ",") {
		objects, err := strconv.Atoi(size)
		if err != nil {
			t.Fatal(err)
		}
		m := newMeasure(t, max(objects/(perOwner+1), scaleBatch))
		m.list()
		m.weigh()
		m.heartbeats()
		m.churn()
		m.cascade(100_000)
		fmt.Fprintln(&rows, m)
	}
	t.Logf("\n%s%s", scaleHeader, rows.String())
}

const scaleHeader = "| objects | heap, B each | RSS, B each | a full collection, CPU | first list: objects/s | CPU, " +
	"µs | unchanged: CPU, µs | come and go: CPU, µs " +
	"| cascade of 100,000: told after | CPU an object, µs | list of all ends after |\n|---|---|---|---|---|---|---|---|---|---|---|\n"

// measure is one graph, and what it came to.
type measure struct {
	t        *testing.T
	g        *graph.Graph
	branches int
	told     []types.UID

	objects                    int
	heap, rss                  int64
	collection                 time.Duration
	listed, beat, changed, one spent
	told100k, swept            time.Duration
}

// spent is what some events took.
type spent struct {
	events    int
	wall, cpu time.Duration
}

func (s spent) each() float64   { return float64(s.cpu.Nanoseconds()) / 1000 / float64(s.events) }
func (s spent) perSec() float64 { return float64(s.events) / s.wall.Seconds() }

// track adds what f takes, of all threads: garbage is collected beside it.
func (s *spent) track(events int, f func()) {
	cpu, start := cpuTime(), time.Now()
	f()
	s.events, s.wall, s.cpu = s.events+events, s.wall+time.Since(start), s.cpu+cpuTime()-cpu
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func newMeasure(t *testing.T, branches int) *measure {
	m := &measure{t: t, branches: branches}
	m.heap, m.rss = weight(t)
	m.g = emptyGraph()
	return m
}

// weight is what is held after all garbage was collected and given back, in bytes: of the heap, and
// of the process.
func weight(t *testing.T) (heap, rss int64) {
	debug.FreeOSMemory()
	heap = int64(heapInUse())
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return heap, pages * int64(os.Getpagesize())
}

func (m *measure) apply(ev graph.Event) { m.told = m.g.Apply(ev) }

// show shows branches, in batches, each object as version says.
func (m *measure) show(s *spent, from, to, step int, version func(o *graph.Object)) {
	for n := from; n < to; {
		var batch []graph.Observed
		for ; n < to && len(batch) < scaleBatch*perOwner; n += step {
			for _, o := range branch(n) {
				version(o)
				batch = append(batch, graph.Observed{Object: o})
			}
		}
		s.track(len(batch), func() {
			for _, ev := range batch {
				m.apply(ev)
			}
		})
	}
}

func asMade(*graph.Object) {}

// list shows all objects to the empty graph, as its first list.
func (m *measure) list() {
	m.apply(graph.ListBegins{Kind: podKind})
	m.apply(graph.ListBegins{Kind: mapKind})
	m.show(&m.listed, 0, m.branches, 1, asMade)
	m.apply(graph.ListEnds{Kind: podKind})
	start := time.Now()
	m.apply(graph.ListEnds{Kind: mapKind})
	m.swept = time.Since(start)
	if m.objects = m.g.Stats().Objects; m.objects != m.branches*(perOwner+1) {
		m.t.Fatalf("%d objects in a graph of %d branches", m.objects, m.branches)
	}
}

func (m *measure) weigh() {
	heap, rss := weight(m.t)
	m.heap, m.rss = heap-m.heap, rss-m.rss
	cpu := cpuTime()
	runtime.GC()
	m.collection = cpuTime() - cpu
}

// heartbeats change nothing but resourceVersions, of 100,000 objects all over the graph.
func (m *measure) heartbeats() {
	version := 1_000_000_000
	m.show(&m.beat, 0, m.branches, max(1, m.branches*(perOwner+1)/100_000), func(o *graph.Object) {
		version++
		o.ResourceVersion = strconv.Itoa(version)
	})
}

// churn lets branches come, and go again: owners first, so that each dependent is decided about.
func (m *measure) churn() {
	const branches = 500
	from := m.branches
	m.show(&m.changed, from, from+branches, 1, asMade)
	var goes []graph.Event
	for n := from; n < from+branches; n++ {
		for _, o := range branch(n) {
			goes = append(goes, graph.Gone{Kind: o.Kind, UID: o.UID})
		}
	}
	m.changed.track(len(goes), func() {
		for _, ev := range goes {
			m.apply(ev)
		}
	})
}

// cascade deletes an owner: its dependents are told of, decided about, and go.
func (m *measure) cascade(dependents int) {
	owner := branch(m.branches)[0]
	m.apply(graph.Observed{Object: owner})
	uids := make([]types.UID, dependents)
	for i := range uids {
		uids[i] = uuid(1<<60 + uint64(i))
		m.apply(graph.Observed{Object: &graph.Object{
			Kind: mapKind, UID: uids[i], Namespace: owner.Namespace, Name: "dependent-" + strconv.Itoa(i), ResourceVersion: "1",
			Owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: owner.Name, UID: owner.UID}},
		}})
	}
	m.one.track(dependents, func() {
		start := time.Now()
		m.apply(graph.Gone{Kind: owner.Kind, UID: owner.UID})
		m.told100k = time.Since(start)
		deletes := 0
		for _, uid := range m.told {
			if m.g.Decide(uid).Verb == graph.Delete {
				deletes++
			}
		}
		if deletes != dependents {
			m.t.Fatalf("%d of %d dependents are to be deleted", deletes, dependents)
		}
		for _, uid := range uids {
			m.apply(graph.Gone{Kind: mapKind, UID: uid})
		}
	})
}

func (m *measure) String() string {
	return fmt.Sprintf("| %d | %d | %d | %v | %.0f | %.2f | %.2f | %.2f | %v | %.2f | %v |", m.objects,
		m.heap/int64(m.objects), m.rss/int64(m.objects), m.collection.Round(time.Millisecond), m.listed.perSec(),
		m.listed.each(), m.beat.each(),
		m.changed.each(), m.told100k.Round(time.Millisecond), m.one.each(), m.swept.Round(100*time.Microsecond))
}
