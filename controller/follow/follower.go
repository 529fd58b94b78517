package follow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-dev/weir/controller/await"
)

const (
	// shortWatch is how long a watch is asked for after one that broke. The API server sends a
	// bookmark 2 s before a watch ends, and otherwise one a minute: so it is soon known whether
	// everything has come.
	shortWatch = 5 * time.Second
	// firstListPause, mostListPause and mostForbiddenPause bound the pauses between attempts to
	// list, firstListPause and mostRetry those that the reflector makes by itself, when there is no
	// answer or it is told to come later.
	firstListPause, mostRetry, mostListPause, mostForbiddenPause = 500 * time.Millisecond, 10 * time.Second, 30 * time.Second, 2 * time.Minute
)

var errMute = errors.New("the watch was taken up again, and shows nothing, not even a bookmark")

// follower lists and watches one kind, and tells the graph how far it has come: the reflector tries
// on by itself, and keeps to itself what goes wrong.
type follower struct {
	*Feed
	gvr      schema.GroupVersionResource
	resource metadata.Getter
	history  *History
	log      logr.Logger
	page     int64          // how many objects a page of a list has
	lists    sync.WaitGroup // those under way: one at the most

	mu      sync.Mutex
	done    bool
	listed  bool        // a list has ended: from here on the kind is level or behind
	lag     string      // why it is behind; "" if it is not
	broken  bool        // the last watch did not end as it should, or there was none for too long: it is not known to go on
	mute    bool        // a watch was begun since
	denied  time.Time   // since when 403 is the only answer; zero if it is not
	err     error       // how the last attempt ended; nil while one is under way
	ended   bool        // there is no watch now
	current *stream     // the last watch
	overdue *time.Timer // fires when there has been none for too long
}

func newFollower(f *Feed, gvr schema.GroupVersionResource, client metadata.Interface, h *History, log logr.Logger) *follower {
	fw := &follower{Feed: f, gvr: gvr, resource: client.Resource(gvr), history: h, log: log}
	f.check, f.level = fw.check, fw.level
	return fw
}

// run follows the kind until ctx ends.
func (f *follower) run(ctx context.Context) {
	defer f.end()
	slow := time.AfterFunc(slowAfter, func() { f.late(slowAfter) })
	defer slow.Stop()
	failing := time.AfterFunc(failingAfter, func() { f.late(failingAfter) })
	defer failing.Stop()
	lw := &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}
	reflector := cache.NewReflectorWithOptions(paged{lw}, &metav1.PartialObjectMetadata{}, f.Feed, cache.ReflectorOptions{
		Name: f.Kind.String(), TypeDescription: f.gvr.String(),
		// Its own longest pause is a minute, in which nothing is seen of an API server that is
		// back.
		Backoff: &wait.Backoff{Duration: firstListPause, Factor: 2, Jitter: 1, Steps: 5, Cap: mostRetry},
	})
	for pause := firstListPause; ; pause = min(2*pause, f.longestPause()) {
		began := time.Now()
		err := reflector.ListAndWatchWithContext(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > mostListPause {
			pause = firstListPause
		}
		if err != nil {
			f.log.V(1).Info("watch ended", "kind", f.gvr.String(), "err", err.Error())
			f.unlisted(err)
		}
		if await.Pause(ctx, pause) != nil {
			return
		}
	}
}

// paged has client-go ask for lists, and not for streams that show what is there and go on as a
// watch: those cost the API server twice as much.
type paged struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is what client-go asks.
func (paged) IsWatchListSemanticsUnSupported() bool { return true }

// end joins the list that may be under way: it ends with the context, and client-go does not wait
// for it.
func (f *follower) end() {
	f.mu.Lock()
	f.done = true
	if f.overdue != nil {
		f.overdue.Stop()
	}
	f.mu.Unlock()
	f.lists.Wait()
	f.Store.release(f.Kind)
}

func (f *follower) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	until, err := f.resume(ctx, &o)
	if err != nil {
		return nil, err
	}
	f.trying()
	w, err := f.resource.Watch(witnessed(ctx, f.failed), o)
	f.tried(ctx, err)
	if err != nil {
		return nil, err
	}
	for !f.watchBegan(until) { // it was put off, or answered late, and how far it has to come was not asked
		if until, err = f.probe(ctx); err != nil {
			w.Stop()
			return nil, err
		}
	}
	end := time.Now()
	if o.TimeoutSeconds != nil {
		end = end.Add(time.Duration(*o.TimeoutSeconds) * time.Second)
	}
	s := &stream{Interface: w, ended: func() { f.watchEnded(ctx, end) }}
	f.mu.Lock()
	f.current = s
	f.mu.Unlock()
	return s, nil
}

// unseen tells whether no list of the kind has ended yet.
func (f *follower) unseen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.listed
}

// stream tells when the reflector has done with a watch. Its events are not touched.
type stream struct {
	watch.Interface
	once  sync.Once
	ended func()
}

// Stop implements watch.Interface.
func (s *stream) Stop() {
	s.Interface.Stop()
	s.once.Do(s.ended)
}

// resume prepares a watch that goes on where another ended, and says how far it has to come if that
// one broke: no reading if it did not.
func (f *follower) resume(ctx context.Context, o *metav1.ListOptions) (until reading, err error) {
	f.mu.Lock()
	broken, mute := f.broken, f.mute
	f.mute = false
	f.mu.Unlock()
	switch {
	case !broken:
		return reading{}, nil
	case mute:
		return reading{}, errMute // a list brings it level
	}
	o.TimeoutSeconds = new(int64(shortWatch / time.Second))
	return f.probe(ctx)
}

// probe reads how far a kind has come whose watch broke. The API server may be another one by now:
// a consistent read must not be older than what was seen, and the watch has to come as far as that.
func (f *follower) probe(ctx context.Context) (reading, error) {
	before := f.reading()
	f.trying()
	within, cancel := context.WithTimeout(ctx, probeTimeout)
	list, err := f.resource.List(witnessed(within, f.failed), metav1.ListOptions{Limit: 1})
	cancel()
	f.tried(ctx, err)
	if err != nil {
		return reading{}, err
	}
	now := readingOf(list.ResourceVersion)
	if why := now.contradicts(before); why != "" {
		f.history.contradicted(f.gvr, why)
		return reading{}, fmt.Errorf("watch %s: %w", f.Kind, ErrRewound)
	}
	return now, nil
}

// check looks at a complete list before the graph has it.
func (f *follower) check(list []any, resourceVersion string) error {
	why := readingOf(resourceVersion).contradicts(f.reading())
	if why == "" && f.Reached.Load() != 0 {
		why = f.Store.contradiction(f.Kind, list, VersionNumber(resourceVersion))
	}
	if why != "" {
		f.history.contradicted(f.gvr, why)
		return fmt.Errorf("list %s: %w", f.Kind, ErrRewound)
	}
	return nil
}
