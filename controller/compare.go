package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// DefaultCompareEvery is in what time each kind is compared with the API once.
const DefaultCompareEvery = time.Hour

// What a comparison may cost. All of it is one request at a time.
const (
	comparePage  = 500                    // objects a request
	comparePause = 100 * time.Millisecond // between two requests
	// mostSuspects are looked into at once. If there are more, and some of them were faults, the kind is compared again,
	// mostPasses times within its turn.
	mostSuspects, mostPasses = 1000, 100
	// passTime is how long a watch may take to show what the list shows. Quiet kinds have a bookmark once a minute.
	passTime = 2 * time.Minute
	// mostFaultsLogged is how many objects a comparison names.
	mostFaultsLogged = 10
)

// comparer compares the graph with the API, slowly and kind by kind. The graph follows from watches, and should they ever
// lose an event, nothing else would tell. Whatever it finds is a bug, here or there; it is counted, named, and repaired.
//
// There are no false alarms, for a fault takes three things: a consistent list shows an object otherwise than the graph;
// it still does when the watch has passed that list; and a live read of the object agrees with the list.
type comparer struct {
	watcher   *watcher
	requester *requester
	store     *store
	every     time.Duration
	metrics   *metrics
	log       logr.Logger
}

// suspect is an object that the graph may have wrong.
type suspect struct {
	what graphFault
	ref  graph.Ref // as the graph has it if the list did not show it, else as the list showed it
}

// graphFault is what is wrong with an object in the graph.
type graphFault string

const (
	faultGhost    graphFault = "ghost"    // it is in the graph, and not there
	faultMissing  graphFault = "missing"  // it is there, and not in the graph
	faultOutdated graphFault = "outdated" // it is otherwise than in the graph
)

// run compares one kind after the other until ctx ends, evenly over the time in which all are to have had their turn.
func (c *comparer) run(ctx context.Context) {
	for last := ""; ; {
		kinds := c.watcher.followed()
		if !pause(ctx, c.every/time.Duration(max(len(kinds), 1))) {
			return
		}
		i := slices.IndexFunc(kinds, func(k followed) bool { return k.feed.kind.String() > last })
		switch {
		case len(kinds) == 0:
			continue
		case i < 0:
			i = 0
		}
		last = kinds[i].feed.kind.String()
		c.compare(ctx, kinds[i])
	}
}

// pause waits; false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// compare compares one kind. That it could not be is no fault: it is counted, and the next turn is another chance.
func (c *comparer) compare(ctx context.Context, k followed) {
	c.metrics.comparing(k.feed.kind)
	found := 0
	for pass, again := 0, true; again && pass < mostPasses; pass++ {
		n, more, err := c.once(ctx, k, found)
		found += n
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.metrics.comparisons.WithLabelValues("skipped").Inc()
			c.log.V(1).Info("not compared", "kind", k.gvr.String(), "err", err.Error())
			return
		}
		again = more && n > 0
	}
	if found > 0 {
		c.metrics.comparisons.WithLabelValues("faulty").Inc()
		c.log.Error(nil, "the graph was wrong, which is a bug: it is repaired", "kind", k.gvr.String(), "objects", found)
		return
	}
	c.metrics.comparisons.WithLabelValues("level").Inc()
}

// once lists a kind and repairs what is at fault with it. more: there were more suspects than are looked into at once.
func (c *comparer) once(ctx context.Context, k followed, named int) (found int, more bool, err error) {
	if k.feed.reached.Load() == 0 {
		return 0, false, errors.New("it is not listed yet, or the resourceVersions of its lists are no numbers, and tell no order")
	}
	suspects, of, err := c.suspects(ctx, k)
	if err != nil || len(suspects) == 0 {
		return 0, false, err
	}
	if err := c.passed(ctx, k.feed, of.last); err != nil {
		return 0, false, err
	}
	for _, s := range suspects {
		is, asked, err := c.judge(ctx, k, s, of.first)
		switch {
		case err != nil:
			return found, false, err
		case is:
			c.metrics.faulty(k.feed.kind, s.what, 1)
			if found++; named+found <= mostFaultsLogged {
				c.log.Error(nil, "the graph was wrong about an object", "object", s.ref.String(), "uid", s.ref.UID, "what", s.what)
			}
		}
		if asked && !pause(ctx, comparePause) {
			return found, false, ctx.Err()
		}
	}
	return found, len(suspects) == mostSuspects, nil
}

// span are the resourceVersions of the pages of a list. They are the same, but for servers that keep no snapshot for who
// reads on.
type span struct{ first, last uint64 }

// suspects lists a kind and returns what the graph has otherwise.
func (c *comparer) suspects(ctx context.Context, k followed) ([]suspect, span, error) {
	var found []suspect
	var uids []uint64 // of the list, as hashes: two that are the same hide a fault, and make none
	seed := maphash.MakeSeed()
	of, err := c.list(ctx, k, func(page []metav1.PartialObjectMetadata) {
		c.store.read(func(g *graph.Graph) {
			for i := range page {
				o := graph.ObjectOf(k.feed.kind, &page[i])
				uids = append(uids, maphash.String(seed, string(o.UID)))
				what := faultMissing
				switch g.Compare(o) {
				case graph.Level:
					continue
				case graph.Different:
					what = faultOutdated
				case graph.Missing:
				}
				if len(found) < mostSuspects {
					found = append(found, suspect{what, refOf(o)})
				}
			}
		})
	})
	if err != nil {
		return nil, of, err
	}
	slices.Sort(uids)
	listed := func(uid types.UID) bool {
		_, ok := slices.BinarySearch(uids, maphash.String(seed, string(uid)))
		return ok
	}
	for next, first := uint32(0), true; first || next != 0 && len(found) < mostSuspects; first = false {
		c.store.read(func(g *graph.Graph) {
			var refs []graph.Ref
			refs, next = g.Unlisted(k.feed.kind, listed, of.first, next, mostSuspects-len(found))
			for _, ref := range refs {
				found = append(found, suspect{faultGhost, ref})
			}
		})
	}
	return found, of, nil
}

// list reads a kind in pages, the first of them consistently: it shows all that happened before.
func (c *comparer) list(ctx context.Context, k followed, page func([]metav1.PartialObjectMetadata)) (span, error) {
	var of span
	o := metav1.ListOptions{Limit: comparePage}
	for {
		list, err := c.watcher.metadata.Resource(k.gvr).List(ctx, o)
		if err != nil {
			return of, fmt.Errorf("list %s: %w", k.gvr.GroupResource(), err)
		}
		of.last = versionNumber(list.ResourceVersion)
		of.first = cmp.Or(of.first, of.last)
		page(list.Items)
		if o.Continue = list.Continue; o.Continue == "" {
			return of, nil
		}
		if !pause(ctx, comparePause) {
			return of, ctx.Err()
		}
	}
}

// passed waits until the graph shows all that happened to a kind up to a resourceVersion.
func (c *comparer) passed(ctx context.Context, f *feed, version uint64) error {
	const look = time.Second
	for waited := time.Duration(0); f.reached.Load() < version; waited += look {
		if waited >= passTime {
			return fmt.Errorf("its watch has not come to resourceVersion %d within %s", version, passTime)
		}
		if !pause(ctx, look) {
			return ctx.Err()
		}
	}
	return nil
}

// judge tells whether a suspect is a fault, now that the watch has passed the list, and repairs it. asked: it took
// requests.
func (c *comparer) judge(ctx context.Context, k followed, s suspect, first uint64) (is, asked bool, err error) {
	mine := c.held(s.ref)
	listed := versionNumber(s.ref.ResourceVersion)
	switch {
	case s.what == faultGhost && (!mine.known || versionNumber(mine.version) > first),
		s.what == faultMissing && mine.known,
		s.what == faultOutdated && (!mine.known || versionNumber(mine.version) > listed):
		return false, false, nil // the watch has brought it
	case s.what == faultGhost:
		is, err = c.exorcise(ctx, k, s.ref, mine.history)
		return is, true, err
	}
	live, err := c.requester.getObject(ctx, s.ref)
	switch {
	case noSuchObject(err, s.ref.Kind, s.ref.Name), err == nil && live.UID != s.ref.UID:
		return false, true, nil // it went after it was listed
	case err != nil:
		return false, true, fmt.Errorf("read %s: %w", s.ref, err)
	}
	same := mine.known && versionNumber(mine.version) == listed // then only what it is like can be wrong
	if same && live.ResourceVersion != mine.version {
		return false, true, nil // it has changed, and the watch will bring that
	}
	repaired := k.feed.repair(live, mine)
	if repaired && s.what == faultMissing {
		// It may have gone after the read, and the watch have told so before the repair.
		_, err = c.exorcise(ctx, k, s.ref, mine.history)
	}
	return repaired || !same, true, err
}

// held is what the graph has of an object.
type held struct {
	known   bool
	version string
	history uint32
}

func heldIn(g *graph.Graph, kind schema.GroupResource, uid types.UID) held {
	version, known := g.Version(kind, uid)
	return held{known, version, g.History()}
}

func (c *comparer) held(ref graph.Ref) (h held) {
	c.store.read(func(g *graph.Graph) { h = heldIn(g, ref.Kind, ref.UID) })
	return h
}

// exorcise takes an object out of the graph that is not there, for certain.
func (c *comparer) exorcise(ctx context.Context, k followed, ref graph.Ref, history uint32) (gone bool, err error) {
	switch answer, reason := c.requester.look(ctx, claimOn(k.gvr, ref)); answer {
	case graph.Absent:
		c.store.apply(graph.NotFound{Kind: ref.Kind, UID: ref.UID, History: history})
		return true, nil
	case graph.Unanswered:
		return false, fmt.Errorf("read %s: %s", ref, reason)
	default:
		return false, nil
	}
}

// repair takes in a live object, if the graph still has it as it was before that was read: it must not go back. What of
// the watch is on its way brings the object to where it is now, or takes it out.
func (f *feed) repair(live *metav1.PartialObjectMetadata, before held) (repaired bool) {
	f.store.applyIf(func(g *graph.Graph) graph.Event {
		o := graph.ObjectOf(f.kind, live)
		if heldIn(g, f.kind, o.UID) != before || g.Compare(o) == graph.Level {
			return nil
		}
		repaired = true
		return graph.Observed{Object: o}
	})
	if repaired {
		f.tell(live)
	}
	return repaired
}

func claimOn(gvr schema.GroupVersionResource, ref graph.Ref) graph.Claim {
	return graph.Claim{
		APIVersion: gvr.GroupVersion().String(), Resource: gvr.GroupResource(), Namespaced: ref.Namespace != "",
		Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID,
	}
}

func refOf(o *graph.Object) graph.Ref {
	return graph.Ref{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}
}

// versionNumber is a resourceVersion as a number, which orders what happened to one kind; 0 if it is none.
func versionNumber(resourceVersion string) uint64 {
	v, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return v
}
