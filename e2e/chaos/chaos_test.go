package chaos

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

var (
	seed    = flag.Uint64("chaos.seed", 0, "seed of the moments; 0: from the clock")
	kills   = flag.Int("chaos.kills", 3, "how often something is killed")
	objects = flag.Int("chaos.objects", 1000, "objects of each cascade")
	each    = flag.Int("chaos.each", 10, "most kills in one cascade")
)

// fixture is a cluster of which anything may be killed, and how often what was.
type fixture struct {
	*testing.T
	random  *rand.Rand
	plane   *plane.Plane
	weir    *weir.Process
	objects dynamic.Interface
	meta    metadata.Interface
	killed  map[string]int
	process sync.Mutex      // held while weir is ended and started again
	serving sync.Mutex      // the same of etcd and the API server
	ended   int             // how often it ended by itself, because it found no server to talk to when it started
	took    []time.Duration // from the last kill in a cascade to its end
}

// TestCascadesEndRightWhateverIsKilled is what the package is for; its comment says how.
func TestCascadesEndRightWhateverIsKilled(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-chaos.seed=%d -chaos.kills=%d -chaos.objects=%d -chaos.each=%d", *seed, *kills, *objects, *each)
	w := newFixture(t)
	started, cascades := time.Now(), 0
	for done := 0; done < *kills; cascades++ {
		n := w.cascade(cascades, min(*each, *kills-done))
		if n == 0 || t.Failed() {
			t.Fatalf("cascade %d: %d kills", cascades, n)
		}
		done += n
	}
	slices.Sort(w.took)
	t.Logf("%d cascades of %d objects, killed %v, %s; weir found no API server %d times when it started", cascades, *objects, w.killed,
		time.Since(started).Round(time.Second), w.ended)
	t.Logf("from the last kill to convergence: min %.1f s, median %.1f s, max %.1f s",
		w.took[0].Seconds(), w.took[len(w.took)/2].Seconds(), w.took[len(w.took)-1].Seconds())
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	binary, err := weir.RacingBinary(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the last, when weir has ended
		if err := weir.Races(); err != nil {
			t.Error(err)
		}
	})
	// What is killed is started again by hand, and ends with the plane.
	p, err := plane.Start(context.WithoutCancel(t.Context()), plane.Options{Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	_, kubeconfig, err := load.Weir(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{T: t, plane: p, random: rand.New(rand.NewPCG(*seed, 0)), killed: map[string]int{}}
	if w.weir, err = weir.Start(context.WithoutCancel(t.Context()), weir.Options{Binary: binary, Kubeconfig: kubeconfig, Dir: p.Dir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.weir.Kill)
	if w.objects, err = dynamic.NewForConfig(p.Config); err != nil {
		t.Fatal(err)
	}
	if w.meta, err = metadata.NewForConfig(p.Config); err != nil {
		t.Fatal(err)
	}
	return w
}

// cascade runs one, and kills at most so often in its middle. It returns how often it did.
func (w *fixture) cascade(number, kills int) int {
	w.Helper()
	c := newCascade(fmt.Sprintf("c%d", number), *objects)
	if err := c.make(w.Context(), w.objects); err != nil {
		w.Fatal(err)
	}
	l := newLedger(w.meta, c)
	ctx, stop := context.WithCancelCause(w.Context())
	defer stop(nil)
	for kind := range kinds {
		go l.follow(ctx, kind)
	}
	go w.keep(ctx, stop)
	for _, part := range servers {
		go w.serve(ctx, part, stop)
	}
	total, _ := l.left()
	if err := c.delete(ctx, w.objects); err != nil {
		w.Fatal(err)
	}
	n, last := 0, time.Now()
	var moments []int
	for ; n < kills; n++ {
		// At once, sometimes; or when some more is done.
		left, _ := l.left()
		next := left - w.random.IntN(1+total/kills)*w.random.IntN(4)/3
		if next <= 0 {
			break
		}
		if err := l.await(ctx, next); err != nil {
			w.fail(l, err)
		}
		left, _ = l.left()
		moments = append(moments, left)
		if err := w.kill(ctx, c, l); err != nil {
			w.fail(l, err)
		}
		last = time.Now()
	}
	if err := l.await(ctx, 0); err != nil {
		w.fail(l, err)
	}
	took := time.Since(last)
	w.took = append(w.took, took)
	if err := w.weir.AwaitReady(ctx); err != nil {
		w.fail(l, cmp.Or(context.Cause(ctx), err))
	}
	if err := w.weir.AwaitIdle(ctx); err != nil {
		w.fail(l, cmp.Or(context.Cause(ctx), err))
	}
	wrong, err := l.verdict(ctx)
	if err != nil {
		w.Fatal(err)
	}
	for _, what := range wrong[:min(len(wrong), 20)] {
		w.Error(what)
	}
	w.Logf("cascade %d: %d of %d objects to be done, killed when %v were left, %.1f s from then to the end, %d wrong",
		number, total, len(c.objects), moments, took.Seconds(), len(wrong))
	return n
}

// kill ends one of them as a crash does, and starts it again. What serves is waited for; weir is
// not, so that it may be killed while it starts.
func (w *fixture) kill(ctx context.Context, c *cascade, l *ledger) error {
	var err error
	switch victim := w.random.IntN(3); victim {
	case 0:
		if err := w.recorded(ctx, c, l); err != nil {
			return err
		}
		w.process.Lock()
		defer w.process.Unlock()
		w.killed["weir"]++
		w.weir.Kill()
		err = w.weir.Start(context.WithoutCancel(ctx))
	case 1, 2:
		part := servers[victim-1]
		w.serving.Lock()
		defer w.serving.Unlock()
		w.killed[string(part)]++
		if err = w.plane.Crash(ctx, part); err != nil && over(w.plane.Child(plane.APIServer)) {
			err = w.again(ctx, plane.APIServer)
		}
	}
	return err
}

// recorded returns when weir has recorded that it saw the owners deleted, or so little is left that
// it is not held. What it saw in the last second before it is killed may be held until a person
// decides.
func (w *fixture) recorded(ctx context.Context, c *cascade, l *ledger) error {
	configMaps := w.objects.Resource(kinds["ConfigMap"]).Namespace(metav1.NamespaceSystem)
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if left, _ := l.left(); left <= 500 { // the limit in a small cluster
			return true, nil
		}
		record, err := configMaps.Get(ctx, "weir-deleted-owners", metav1.GetOptions{})
		if err != nil {
			return false, nil //nolint:nilerr // it is not there yet, or the API server is not
		}
		owners, _, _ := unstructured.NestedString(record.Object, "data", "owners")
		for boss, policy := range c.bosses {
			if policy == metav1.DeletePropagationBackground && !strings.Contains(owners, string(boss.uid)) {
				return false, nil
			}
		}
		return true, nil
	})
}

// servers are what is killed besides weir.
var servers = []plane.Part{plane.APIServer, plane.Etcd}

// serve is keep for a server: an API server whose start is not over when etcd is killed may end by
// itself, and nothing goes on without it.
func (w *fixture) serve(ctx context.Context, part plane.Part, fail context.CancelCauseFunc) {
	for {
		w.serving.Lock()
		exited := w.plane.Child(part).Exited()
		w.serving.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-exited:
		}
		w.serving.Lock()
		var err error
		if ctx.Err() == nil && over(w.plane.Child(part)) { // it was not started again
			err = w.again(ctx, part)
		}
		w.serving.Unlock()
		if err != nil {
			fail(err)
			return
		}
	}
}

// again starts a server that has ended by itself.
func (w *fixture) again(ctx context.Context, part plane.Part) error {
	c := w.plane.Child(part)
	w.Logf("%s ended by itself, and is started again; its log ends with\n%s", part, c.Tail(5))
	return w.plane.Crash(ctx, part)
}

func over(c *plane.Child) bool {
	select {
	case <-c.Exited():
		return true
	default:
		return false
	}
}

// keep is what a kubelet is: weir ends when there is no API server to begin with, and is started
// again. Whatever else ends it is a failure, for which the test waits no longer.
func (w *fixture) keep(ctx context.Context, fail context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.exited():
		}
		if err := w.revive(ctx); err != nil {
			fail(err)
			return
		}
	}
}

func (w *fixture) exited() <-chan struct{} {
	w.process.Lock()
	defer w.process.Unlock()
	return w.weir.Exited()
}

func (w *fixture) revive(ctx context.Context) error {
	w.process.Lock()
	defer w.process.Unlock()
	select {
	case <-w.weir.Exited():
	default:
		return nil // the test killed it, and has started it again
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if tail := w.weir.Tail(3); !strings.Contains(tail, "reach the API server") {
		return fmt.Errorf("weir ended by itself: %w", w.weir.Wait())
	}
	w.ended++
	if err := w.weir.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start weir again: %w", err)
	}
	return nil
}

// fail says what is known when a cascade does not end: what killed what, what the API server shows
// by now, and what weir says of itself.
func (w *fixture) fail(l *ledger, why error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), time.Minute)
	defer cancel()
	var known []string
	left, _ := l.left()
	for kind := range kinds {
		if _, err := l.list(ctx, kind); err != nil {
			known = append(known, err.Error())
		}
	}
	now, _ := l.left()
	known = append(known, fmt.Sprintf("%d objects were left by the watches, and %d are by a list", left, now))
	text, err := w.weir.Get(ctx, "/metrics", "")
	if err != nil {
		known = append(known, err.Error())
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "weir_graph_kinds") || strings.HasPrefix(line, "weir_queue") || strings.HasPrefix(line, "workqueue_depth") {
			known = append(known, strings.TrimSpace(line))
		}
	}
	w.Fatalf("killed %v: %v; %s; weir's log ends with\n%s", w.killed, why, strings.Join(known, "; "), w.weir.Tail(60))
}
