package insight

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/internal/testkit/script"
)

var (
	seed   = flag.Uint64("seed", 0, "seed of the first random cluster; 0: from the clock")
	cases  = flag.Int("cases", 0, "number of random clusters; 0: as many as begin within -for")
	within = flag.Duration("for", 500*time.Millisecond, "how long a test begins random clusters")
)

// eachSeed calls a test with the seed of each random cluster.
func eachSeed(t *testing.T, try func(t *testing.T, rng *rand.Rand)) {
	t.Helper()
	var first uint64
	n := 0
	for i, s := range fixture.Seeds(*seed, *cases, *within) {
		if n++; i == 0 {
			first = s
		}
		if !t.Run("", func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d: -args -seed=%[1]d -cases=1", s)
				}
			}()
			try(t, rand.New(rand.NewPCG(s, 0)))
		}) {
			return
		}
	}
	t.Logf("seed %d, %d clusters", first, n)
}

func byUID(items []*Item) map[types.UID]*Item {
	out := map[types.UID]*Item{}
	for _, i := range items {
		out[i.UID] = i
	}
	return out
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

var (
	configMaps = graph.Resource{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true, Deletable: true, Listable: true}
	secrets    = graph.Resource{Resource: "secrets", Kind: "Secret", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true, Deletable: true, Listable: true}
	nodes      = graph.Resource{Resource: "nodes", Kind: "Node", Version: "v1", Versions: []string{"v1"}, Collected: true, Deletable: true, Listable: true}
	someKinds  = []graph.Resource{configMaps, secrets, nodes}
)

// object is one of a kind.
func object(kind graph.Resource, namespace, name string, owners ...metav1.OwnerReference) metav1.PartialObjectMetadata {
	if !kind.Namespaced {
		namespace = ""
	}
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", OwnerReferences: owners}}
}

func reference(kind graph.Resource, name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: kind.Kind, Name: name, UID: types.UID("uid-" + name)}
}

// randomCluster are a few objects that refer to each other, and to others, in any way that an API
// server accepts. Most are of one namespace.
func randomCluster(rng *rand.Rand) *World {
	n := 2 + rng.IntN(9)
	byKind := map[string][]metav1.PartialObjectMetadata{}
	kinds := make([]graph.Resource, n)
	for i := range n {
		kinds[i] = pick(rng, configMaps, configMaps, secrets, nodes)
	}
	for i, k := range kinds {
		var owners []metav1.OwnerReference
		for range pick(rng, 0, 1, 1, 1, 2, 2, 3) {
			of := rng.IntN(n)
			r := reference(kinds[of], fmt.Sprint("o", of))
			r.BlockOwnerDeletion = pick(rng, nil, new(true), new(true), new(false))
			r.Controller = pick(rng, nil, nil, new(true))
			switch rng.IntN(25) {
			case 0:
				r.Name, r.UID = "never", "uid-never"
			case 1:
				r.Name = "another"
			case 2:
				r.Kind, r.APIVersion = "Gizmo", "example.com/v1"
			}
			owners = append(owners, r)
		}
		m := object(k, pick(rng, "x", "x", "x", "x", "y"), fmt.Sprint("o", i), owners...)
		for _, f := range []string{"example.com/a", "example.com/b", metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents} {
			if rng.IntN(8) == 0 && (f != metav1.FinalizerOrphanDependents || !slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents)) {
				m.Finalizers = append(m.Finalizers, f)
			}
		}
		if len(m.Finalizers) > 0 && rng.IntN(3) == 0 {
			m.DeletionTimestamp = &metav1.Time{Time: noon}
		}
		byKind[k.Resource] = append(byKind[k.Resource], m)
	}
	w := NewWorld("", someKinds)
	for _, k := range someKinds {
		w.List(k.GroupResource(), "1", byKind[k.Resource])
	}
	return w
}

// cluster is an API server, and collectors that go by the graph's decisions one at a time, in any
// order. It knows nothing of plans.
type cluster struct {
	*World
	rng     *rand.Rand
	version int
	begun   map[types.UID]bool // whose deletion goes on because of what is done here
	rounds  bool               // all objects are decided about before anything is done, as workers do that work at the same time
}

func (c *cluster) write(v *graph.View, owners []metav1.OwnerReference, finalizers []string) {
	if v.Deleting && len(finalizers) == 0 {
		c.Graph.Apply(graph.Gone{Kind: v.Kind, UID: v.UID})
		return
	}
	c.version++
	c.Graph.Apply(graph.Observed{Object: &graph.Object{Kind: v.Kind, UID: v.UID, Namespace: v.Namespace, Name: v.Name, ResourceVersion: strconv.Itoa(c.version + 100),
		Owners: owners, Finalizers: finalizers, Deleting: v.Deleting}})
}

// remove is a DELETE.
func (c *cluster) remove(uid types.UID, propagation metav1.DeletionPropagation) {
	v, _ := c.Graph.Find(uid)
	v.Deleting = true
	rest := slices.DeleteFunc(slices.Clone(v.Finalizers), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
	switch propagation {
	case metav1.DeletePropagationForeground:
		rest = append(rest, metav1.FinalizerDeleteDependents)
	case metav1.DeletePropagationOrphan:
		rest = append(rest, metav1.FinalizerOrphanDependents)
	}
	c.begun[uid] = true
	c.write(&v, ownersOf(&v), rest)
}

// round does what is decided about all objects, if there is anything to do. What another has
// written meanwhile is decided about again.
func (c *cluster) round(todo []types.UID) (worked bool) {
	decided, versions := map[types.UID]graph.Action{}, map[types.UID]string{}
	for _, uid := range todo {
		v, _ := c.Graph.Find(uid)
		decided[uid], versions[uid] = c.Graph.Decide(uid), v.ResourceVersion
	}
	for _, uid := range todo {
		if v, ok := c.Graph.Find(uid); ok && v.ResourceVersion == versions[uid] && c.work(uid, decided[uid]) {
			worked = true
		}
	}
	return worked
}

// work does what is decided about one object, if there is anything to do.
func (c *cluster) work(uid types.UID, a graph.Action) bool {
	v, ok := c.Graph.Find(uid)
	if !ok {
		return false
	}
	switch a.Verb {
	case graph.Lookup:
		c.Graph.Apply(graph.LookupStarted{Claim: a.Claim})
		c.Graph.Apply(c.lookup(a.Claim, uid))
	case graph.Delete:
		c.remove(uid, a.Propagation)
	case graph.Release, graph.Unblock:
		c.write(&v, a.Owners, v.Finalizers)
	case graph.Unfinalize:
		c.begun[uid] = true
		c.write(&v, ownersOf(&v), a.Finalizers)
	default:
		return false
	}
	return true
}

// settle works until there is nothing to do; and takes finalizers off then, of what is deleted
// because of what was done here.
func (c *cluster) settle() {
	for {
		todo := script.UIDs(c.Graph)
		slices.Sort(todo)
		c.rng.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
		if c.rounds && c.round(todo) || !c.rounds && slices.ContainsFunc(todo, func(uid types.UID) bool { return c.work(uid, c.Graph.Decide(uid)) }) {
			continue
		}
		if !slices.ContainsFunc(todo, c.removeFinalizers) {
			return
		}
	}
}

func (c *cluster) removeFinalizers(uid types.UID) bool {
	v, _ := c.Graph.Find(uid)
	keep := slices.DeleteFunc(slices.Clone(v.Finalizers), func(f string) bool { return strings.HasPrefix(f, "example.com/") })
	if !c.begun[uid] || !v.Deleting || len(keep) == len(v.Finalizers) {
		return false
	}
	c.write(&v, ownersOf(&v), keep)
	return true
}

// settled is a random cluster in which a collector has done all that there is to do.
func settled(rng *rand.Rand) *World {
	c := &cluster{World: randomCluster(rng), rng: rng, begun: map[types.UID]bool{}}
	c.settle()
	return c.World
}

// TestPlanIsWhatACollectorDoes: it is compared with a collector that goes by Decide alone, one
// object at a time and in any order.
func TestPlanIsWhatACollectorDoes(t *testing.T) {
	eachSeed(t, func(t *testing.T, rng *rand.Rand) {
		w := settled(rng)
		uids := script.UIDs(w.Graph)
		if len(uids) == 0 {
			return
		}
		slices.Sort(uids)
		d := Deletion{Propagation: pick(rng, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan)}
		for range 1 + rng.IntN(2) {
			d.Roots = append(d.Roots, pick(rng, uids...))
		}
		planned := w.Clone()
		p := planned.Plan(d)
		c := &cluster{World: w.Clone(), rng: rng, begun: map[types.UID]bool{}, rounds: rng.IntN(2) == 0 || racy(w, p)}
		for _, uid := range d.Roots {
			if _, ok := c.Graph.Find(uid); ok {
				c.remove(uid, d.Propagation)
			}
		}
		c.settle()
		items := byUID(p.Items)
		for _, uid := range uids {
			v, left := c.Graph.Find(uid)
			i := items[uid]
			says := Outcome("")
			if i != nil {
				says = i.Outcome
			}
			if i != nil && i.Contested != "" {
				continue
			}
			if (says == Deleted) == left || (says == Stuck) != (left && v.Deleting && c.begun[uid]) {
				t.Errorf("plan of %v %s: %s %q; it is left: %t", d.Roots, d.Propagation, uid, says, left)
			}
		}
		if t.Failed() {
			t.Logf("before:\n%s\nplan:\n%s\nplayed:\n%s", script.Dump(w.Graph), drawnPlan(t, p), script.Dump(c.Graph))
		}
		for _, uid := range script.UIDs(planned.Graph) {
			if a := planned.Graph.Decide(uid); a.Request() {
				t.Errorf("%s is to be done about %s when the plan has ended", a.Verb, uid)
			}
		}
	})
}

// racy tells whether what becomes of objects may depend on who works first: whether an owner still
// waits for its dependents, or is gone, when a dependent is decided about that does not block it.
// What follows differs only for one that waits for ever, or has the orphan finalizer already.
func racy(w *World, p *Plan) bool {
	for v := range w.objects() {
		if !v.Deleting && slices.Contains(v.Finalizers, metav1.FinalizerOrphanDependents) {
			return true
		}
	}
	return p.Totals().Stuck > 0
}

func drawnPlan(t *testing.T, p *Plan) string {
	t.Helper()
	var out strings.Builder
	if err := p.Draw(&out, Style{Full: true}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
