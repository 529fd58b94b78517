package snapshot

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/ask/insight"
)

var seed = flag.Uint64("seed", 0, "seed of the random cluster; 0: from the clock")

// cluster makes up what watches show: a few objects, so that they meet each other often.
type cluster struct {
	*rand.Rand
	*following
	objects map[string]*metav1.PartialObjectMetadata // by kind, namespace and name
	version int
}

// happens is one event of a watch.
func (c *cluster) happens() {
	kind, namespace := "configmap", []string{"x", "y"}[c.IntN(2)]
	if c.IntN(4) == 0 {
		kind, namespace = "namespace", ""
	}
	name := fmt.Sprintf("%s%d", kind[:1], c.IntN(8))
	if namespace == "" {
		name = []string{"x", "y", "z"}[c.IntN(3)]
	}
	of := c.kinds[schema.GroupResource{Resource: kind + "s"}]
	key := kind + "/" + namespace + "/" + name
	c.version++
	before := c.objects[key]
	if before != nil && c.IntN(3) == 0 {
		delete(c.objects, key)
		_ = of.Delete(before) // never fails, as Update
		of.UpdateResourceVersion(strconv.Itoa(c.version))
		return
	}
	m := object(kind, namespace, name)
	m.UID, m.ResourceVersion = types.UID(fmt.Sprintf("%s-%d", name, c.version)), strconv.Itoa(c.version)
	if before != nil {
		m.UID = before.UID
	}
	for range c.IntN(3) {
		all := slices.Sorted(maps.Keys(c.objects))
		for _, at := range c.Perm(len(all)) {
			if o := c.objects[all[at]]; o.Namespace == namespace || o.Namespace == "" {
				m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: o.Kind, Name: o.Name, UID: o.UID, BlockOwnerDeletion: new(c.IntN(2) == 0)})
				break
			}
		}
	}
	if c.IntN(4) == 0 {
		m.Finalizers = append(m.Finalizers, "example.com/hold")
	}
	if before != nil && c.IntN(4) == 0 {
		m.DeletionTimestamp = new(metav1.Unix(1000, 0))
		m.Finalizers = append(m.Finalizers, metav1.FinalizerDeleteDependents)
	}
	c.objects[key] = m
	_ = of.Update(m)
	of.UpdateResourceVersion(m.ResourceVersion)
}

// answers are what a World says about everything in it. Each question is asked of another clone.
func answers(t *testing.T, w *insight.World) string {
	t.Helper()
	var out strings.Builder
	uids := w.Graph.UIDs()
	now := time.Unix(2000, 0)
	if err := insight.DrawOrphans(&out, w.Clone().Orphans(), "", insight.Style{Full: true}); err != nil {
		t.Fatal(err)
	}
	if err := insight.DrawPending(&out, w.Clone().Pending(now), "", insight.Style{}); err != nil {
		t.Fatal(err)
	}
	lines := map[types.UID]string{}
	for _, uid := range uids {
		var of strings.Builder
		for _, name := range slices.Sorted(maps.Keys(insight.Propagations)) {
			propagation := insight.Propagations[name]
			if o, ok := w.Clone().Outline(uid, insight.Deletion{Propagation: propagation}, now); ok {
				fmt.Fprintf(&of, "%s: %s\n", propagation, o.Plan.Summary())
			}
		}
		if err := insight.DrawTree(&of, w.Clone().Tree(uid, now), insight.Style{Full: true}); err != nil {
			t.Fatal(err)
		}
		why, _ := w.Clone().Why(uid, insight.Facts{}, now)
		if err := why.Draw(&of, insight.Style{}); err != nil {
			t.Fatal(err)
		}
		lines[uid] = of.String()
	}
	fmt.Fprintf(&out, "%d objects\n", len(uids))
	for _, uid := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&out, "%s\n%s", uid, lines[uid])
	}
	return out.String()
}

// TestWhatIsKeptAnswersAsWhatIsReadAgain: a World that takes in change by change says what one says
// that is made of all that is there.
func TestWhatIsKeptAnswersAsWhatIsReadAgain(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", first)
	const events = 60
	compared, same := 0, 0
	c := &cluster{Rand: rand.New(rand.NewPCG(first, 0)), following: follow(t), objects: map[string]*metav1.PartialObjectMetadata{}}
	c.start("")
	for step := range events {
		c.happens()
		if c.IntN(3) > 0 {
			continue // several changes are taken in at once
		}
		namespace := []string{"", "x", "y"}[c.IntN(3)]
		before := c.world
		kept := c.whole(namespace)
		if c.world == before {
			same++
		}
		c.mu.Lock()
		again := c.make()
		c.mu.Unlock()
		again.Asked = namespace
		if err := kept.Graph.Check(); err != nil {
			t.Fatalf("step %d: the graph is broken: %v", step, err)
		}
		if diff := cmp.Diff(answers(t, again), answers(t, kept)); diff != "" {
			t.Fatalf("step %d, namespace %q (-made anew +kept):\n%s", step, namespace, diff)
		}
		compared++
	}
	t.Logf("%d events, %d worlds compared, %d of them kept from before", events, compared, same)
	if compared < events/6 || same < compared/6 {
		t.Error("that is not enough to tell")
	}
}
