package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/metaonly"
	"github.com/weir-dev/weir/controller/request"
)

// DefaultEvery is in what time each kind is compared with the API once.
const DefaultEvery = time.Hour

// What a comparison may cost. All of it is one request at a time.
const (
	comparePage  = 500                    // objects a request
	comparePause = 100 * time.Millisecond // between two requests
	// mostSuspects are looked into at once. If there are more, and some of them were faults, the
	// kind is compared again, mostPasses times within its turn.
	mostSuspects, mostPasses = 1000, 100
	// passTime is how long a watch may take to show what the list shows. Quiet kinds have a
	// bookmark once a minute.
	passTime = 2 * time.Minute
	// mostFaultsLogged is how many objects a comparison names.
	mostFaultsLogged = 10
)

// Comparer compares the graph with the API, slowly and kind by kind. The graph follows from
// watches, and should they ever lose an event, nothing else would tell. Whatever it finds is a bug,
// here or there; it is counted, named, and repaired.
//
// There are no false alarms, for a fault takes three things: a consistent list shows an object
// otherwise than the graph; it still does when the watch has passed that list; and a live read of
// the object agrees with the list.
type Comparer struct {
	watcher   *follow.Watcher
	requester *request.Client
	store     *follow.Store
	every     time.Duration
	metrics   *metrics
	faults    atomic.Int64 // found since it began
	log       logr.Logger
}

// New makes one that has each kind compared once in a time; 0 is for never.
func New(w *follow.Watcher, r *request.Client, s *follow.Store, every time.Duration, log logr.Logger, reg prometheus.Registerer) *Comparer {
	return &Comparer{watcher: w, requester: r, store: s, every: every, metrics: newMetrics(reg), log: log}
}

// Faults is how many objects the graph had wrong.
func (c *Comparer) Faults() int { return int(c.faults.Load()) }

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

// Run compares one kind after the other until ctx ends, evenly over the time in which all are to
// have had their turn.
func (c *Comparer) Run(ctx context.Context) {
	if c.every == 0 {
		return
	}
	for last := ""; ; {
		kinds := c.watcher.Followed()
		if await.Pause(ctx, c.every/time.Duration(max(len(kinds), 1))) != nil {
			return
		}
		i := slices.IndexFunc(kinds, func(k follow.Followed) bool { return k.Feed.Kind.String() > last })
		switch {
		case len(kinds) == 0:
			continue
		case i < 0:
			i = 0
		}
		last = kinds[i].Feed.Kind.String()
		c.compare(ctx, kinds[i])
	}
}

// compare compares one kind. That it could not be is no fault: it is counted, and the next turn is
// another chance.
func (c *Comparer) compare(ctx context.Context, k follow.Followed) {
	c.metrics.comparing(k.Feed.Kind)
	found := 0
	for pass, again := 0, true; again && pass < mostPasses; pass++ {
		n, more, err := c.once(ctx, k, found)
		found += n
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.metrics.comparisons.WithLabelValues("skipped").Inc()
			c.log.V(1).Info("not compared", "kind", k.GVR.String(), "err", err.Error())
			return
		}
		again = more && n > 0
	}
	if found > 0 {
		c.metrics.comparisons.WithLabelValues("faulty").Inc()
		c.log.Error(nil, "the graph was wrong, which is a bug: it is repaired", "kind", k.GVR.String(), "objects", found)
		return
	}
	c.metrics.comparisons.WithLabelValues("equal").Inc()
}

// once lists a kind and repairs what is at fault with it. more: there were more suspects than are
// looked into at once.
func (c *Comparer) once(ctx context.Context, k follow.Followed, named int) (found int, more bool, err error) {
	if k.Feed.Reached.Load() == 0 {
		return 0, false, errors.New("it is not listed yet, or the resourceVersions of its lists are no numbers, and tell no order")
	}
	suspects, of, err := c.suspects(ctx, k)
	if err != nil || len(suspects) == 0 {
		return 0, false, err
	}
	if err := c.passed(ctx, k.Feed, of.last); err != nil {
		return 0, false, err
	}
	for _, s := range suspects {
		is, asked, err := c.judge(ctx, k, s, of.first)
		switch {
		case err != nil:
			return found, false, err
		case is:
			c.metrics.faulty(k.Feed.Kind, s.what, 1)
			c.faults.Add(1)
			if found++; named+found <= mostFaultsLogged {
				c.log.Error(nil, "the graph was wrong about an object", "object", s.ref.String(), "uid", s.ref.UID, "what", s.what)
			}
		}
		if asked && await.Pause(ctx, comparePause) != nil {
			return found, false, ctx.Err()
		}
	}
	return found, len(suspects) == mostSuspects, nil
}

// span are the resourceVersions of the pages of a list. They are the same, but for servers that
// keep no snapshot for who reads on.
type span struct{ first, last uint64 }

// suspects lists a kind and returns what the graph has otherwise.
func (c *Comparer) suspects(ctx context.Context, k follow.Followed) ([]suspect, span, error) {
	var found []suspect
	var uids []uint64 // of the list, as hashes: two that are the same hide a fault, and make none
	seed := maphash.MakeSeed()
	of, err := c.list(ctx, k, func(page []metav1.PartialObjectMetadata) {
		c.store.Read(func(g *graph.Graph) {
			for i := range page {
				o := graph.ObjectOf(k.Feed.Kind, &page[i])
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
		c.store.Read(func(g *graph.Graph) {
			var refs []graph.Ref
			refs, next = g.Unlisted(k.Feed.Kind, listed, of.first, next, mostSuspects-len(found))
			for _, ref := range refs {
				found = append(found, suspect{faultGhost, ref})
			}
		})
	}
	return found, of, nil
}

// list reads a kind in pages, the first of them consistently: it shows all that happened before.
func (c *Comparer) list(ctx context.Context, k follow.Followed, page func([]metav1.PartialObjectMetadata)) (span, error) {
	var of span
	o, pages := metav1.ListOptions{Limit: comparePage}, metaonly.Pages{}
	for {
		list, err := c.watcher.Metadata.Resource(k.GVR).List(ctx, o)
		if err != nil {
			return of, fmt.Errorf("list %s: %w", k.GVR.GroupResource(), err)
		}
		of.last = follow.VersionNumber(list.ResourceVersion)
		of.first = cmp.Or(of.first, of.last)
		page(list.Items)
		for i := range list.Items {
			pages.Saw(&list.Items[i].ObjectMeta)
		}
		if err := pages.Next(list.Continue); err != nil {
			return of, fmt.Errorf("list %s: %w", k.GVR.GroupResource(), err)
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return of, nil
		}
		if await.Pause(ctx, comparePause) != nil {
			return of, ctx.Err()
		}
	}
}

// passed waits until the graph shows all that happened to a kind up to a resourceVersion.
func (c *Comparer) passed(ctx context.Context, f *follow.Feed, version uint64) error {
	const look = time.Second
	for waited := time.Duration(0); f.Reached.Load() < version; waited += look {
		if waited >= passTime {
			return fmt.Errorf("its watch has not come to resourceVersion %d within %s", version, passTime)
		}
		if await.Pause(ctx, look) != nil {
			return ctx.Err()
		}
	}
	return nil
}

// judge tells whether a suspect is a fault, now that the watch has passed the list, and repairs it.
// asked: it took requests.
func (c *Comparer) judge(ctx context.Context, k follow.Followed, s suspect, first uint64) (is, asked bool, err error) {
	mine := c.held(s.ref)
	listed := follow.VersionNumber(s.ref.ResourceVersion)
	switch {
	case s.what == faultGhost && (!mine.known || follow.VersionNumber(mine.version) > first),
		s.what == faultMissing && mine.known,
		s.what == faultOutdated && (!mine.known || follow.VersionNumber(mine.version) > listed):
		return false, false, nil // the watch has brought it
	case s.what == faultGhost:
		is, err = c.exorcise(ctx, k, s.ref, mine.history)
		return is, true, err
	}
	live, err := c.requester.GetObject(ctx, s.ref)
	switch {
	case request.NoSuchObject(err, s.ref.Kind, s.ref.Name), err == nil && live.UID != s.ref.UID:
		return false, true, nil // it went after it was listed
	case err != nil:
		return false, true, fmt.Errorf("read %s: %w", s.ref, err)
	}
	same := mine.known && follow.VersionNumber(mine.version) == listed // then only what it is like can be wrong
	if same && live.ResourceVersion != mine.version {
		return false, true, nil // it has changed, and the watch will bring that
	}
	repaired := repair(k.Feed, live, mine)
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

func (c *Comparer) held(ref graph.Ref) (h held) {
	c.store.Read(func(g *graph.Graph) { h = heldIn(g, ref.Kind, ref.UID) })
	return h
}

// exorcise takes an object out of the graph that is not there, for certain.
func (c *Comparer) exorcise(ctx context.Context, k follow.Followed, ref graph.Ref, history uint32) (gone bool, err error) {
	switch answer, reason := c.requester.Lookup(ctx, claimOn(k.GVR, ref)); answer {
	case graph.Absent:
		c.store.Apply(graph.NotFound{Kind: ref.Kind, UID: ref.UID, History: history})
		return true, nil
	case graph.Unanswered:
		return false, fmt.Errorf("read %s: %s", ref, reason)
	default:
		return false, nil
	}
}

// repair takes in a live object, if the graph still has it as it was before that was read: it must
// not go back. What of the watch is on its way brings the object to where it is now, or takes it
// out.
func repair(f *follow.Feed, live *metav1.PartialObjectMetadata, before held) (repaired bool) {
	f.Store.ApplyIf(func(g *graph.Graph) graph.Event {
		o := graph.ObjectOf(f.Kind, live)
		if heldIn(g, f.Kind, o.UID) != before || g.Compare(o) == graph.Level {
			return nil
		}
		repaired = true
		return graph.Observed{Object: o}
	})
	if repaired {
		f.Notify(live)
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
