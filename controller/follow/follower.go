package follow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-dev/weir/controller/await"
)

const (
	// shortWatch is how long a watch is asked for after one that broke. The API server sends a bookmark 2 s before a watch
	// ends, and otherwise one a minute: so it is soon known whether everything has come.
	shortWatch = 5 * time.Second
	// firstListPause, mostListPause and mostForbiddenPause bound the pauses between attempts to list, firstListPause and mostRetry those
	// that the reflector makes by itself, when there is no answer or it is told to come later.
	firstListPause, mostRetry, mostListPause, mostForbiddenPause = 500 * time.Millisecond, 10 * time.Second, 30 * time.Second, 2 * time.Minute
)

var errMute = errors.New("the watch was taken up again, and shows nothing, not even a bookmark")

// follower lists and watches one kind, and tells the graph how far it has come: the reflector tries on by itself, and
// keeps to itself what goes wrong.
type follower struct {
	*Feed
	gvr      schema.GroupVersionResource
	resource metadata.Getter
	history  *History
	log      logr.Logger

	mu      sync.Mutex
	done    bool
	listed  bool        // a list has ended: from here on the kind is level or behind
	lag     string      // why it is behind; "" if it is not
	broken  bool        // the last watch did not end as it should, or there was none for too long: it is not known to go on
	mute    bool        // a watch was begun since
	plain   bool        // the last list was asked for as one, not as a stream that goes on as a watch
	denied  time.Time   // since when 403 is the only answer; zero if it is not
	err     error       // how the last attempt ended; nil while one is under way
	ended   bool        // there is no watch now
	overdue *time.Timer // fires when there has been none for too long
}

func newFollower(f *Feed, gvr schema.GroupVersionResource, client metadata.Interface, h *History, log logr.Logger) *follower {
	fw := &follower{Feed: f, gvr: gvr, resource: client.Resource(gvr), history: h, log: log}
	f.check, f.level = fw.check, fw.level
	return fw
}

// run follows the kind until ctx ends.
func (f *follower) run(ctx context.Context, client metadata.Interface) {
	defer f.end()
	slow := time.AfterFunc(slowAfter, func() { f.late(slowAfter) })
	defer slow.Stop()
	failing := time.AfterFunc(failingAfter, func() { f.late(failingAfter) })
	defer failing.Stop()
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}, client)
	reflector := cache.NewReflectorWithOptions(lw, &metav1.PartialObjectMetadata{}, f.Feed, cache.ReflectorOptions{
		Name: f.Kind.String(), TypeDescription: f.gvr.String(),
		// Its own longest pause is a minute, in which nothing is seen of an API server that is back.
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

func (f *follower) end() {
	f.Store.release(f.Kind)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = true
	if f.overdue != nil {
		f.overdue.Stop()
	}
}

func (f *follower) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	f.trying(true)
	list, err := f.resource.List(witnessed(ctx, f.failed), o)
	if !outdated(err) { // the reflector lists again without one
		f.tried(ctx, err)
	}
	return list, err
}

func (f *follower) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	goesOn := o.SendInitialEvents == nil // not a list as a stream
	var until reading
	var err error
	if goesOn {
		if until, err = f.resume(ctx, &o); err != nil {
			return nil, err
		}
	}
	f.trying(false)
	w, err := f.resource.Watch(witnessed(ctx, f.failed), o)
	f.tried(ctx, err)
	if err != nil {
		return nil, err
	}
	for goesOn && !f.watchBegan(until) { // it was put off, or answered late, and how far it has to come was not asked
		if until, err = f.probe(ctx); err != nil {
			w.Stop()
			return nil, err
		}
	}
	end := time.Now()
	if o.TimeoutSeconds != nil {
		end = end.Add(time.Duration(*o.TimeoutSeconds) * time.Second)
	}
	// The reflector leaves a watch alone, unstopped, when the store refuses the list that came by it.
	unhook := context.AfterFunc(ctx, w.Stop)
	w = &stream{Interface: w, ended: func() { unhook(); f.watchEnded(ctx, end) }}
	if goesOn || !f.unseen() {
		return w, nil
	}
	return f.takeIn(ctx, w)
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

// resume prepares a watch that goes on where another ended, and says how far it has to come if that one broke: no reading if it did not.
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

// probe reads how far a kind has come whose watch broke. The API server may be another one by now: a consistent read must not be older than
// what was seen, and the watch has to come as far as that.
func (f *follower) probe(ctx context.Context) (reading, error) {
	before := f.reading()
	f.trying(false)
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

// outdated tells whether an answer says that the resourceVersion that was asked for is too old, or too new.
func outdated(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}
