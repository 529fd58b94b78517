package follow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/metaonly"
)

// firstListPause, mostListPause and mostForbiddenPause bound the pauses between attempts to list.
// firstListPause and mostRetry bound those of the reflector itself, when there is no answer or it
// is told to come later.
const (
	firstListPause, mostRetry         = 500 * time.Millisecond, 10 * time.Second
	mostListPause, mostForbiddenPause = 30 * time.Second, 2 * time.Minute
	// answeredWithin is how long a watch may take to begin. Without it, a kind whose request neither
	// is answered nor fails would stay behind.
	answeredWithin = time.Minute
)

var errListFirst = errors.New("the last watch did not end as it should: the kind is listed first")

// follower lists and watches one kind, and tells the graph how far it has come, which the reflector
// keeps to itself. After a watch that ends before its time it lists the kind again, and does not
// resume.
type follower struct {
	Kind     schema.GroupResource
	gvr      schema.GroupVersionResource
	store    *Store
	resource *metaonly.Kind
	history  *History
	log      logr.Logger
	listener Listener
	// seen is called for each object of the kind that comes, changes or goes. It may be nil.
	seen    func(m *metav1.PartialObjectMetadata, how Change)
	page    int64          // how many objects a page of a list has
	contact bool           // its watch is by the connection that requests go by
	lists   sync.WaitGroup // those under way: one at the most
	// Reached is the resourceVersion up to which the graph has everything of the kind; 0 if that is
	// not known.
	Reached atomic.Uint64
	// coming is the list that has come, until client-go has it. Only the reflector uses it.
	coming *coming

	leaving bool               // it is to end; the Watcher's lock guards it
	stop    context.CancelFunc // ends it
	stopped chan struct{}      // is closed when it has ended

	mu      sync.Mutex
	done    bool
	listed  bool        // a list has ended: from here on the kind is level or behind
	begun   uint64      // how many lists have begun, which is the number of the last
	have    uint64      // the list that ended last
	due     uint64      // the list that has to end before there is a watch
	lag     string      // why it is behind; "" if it is not
	lagAt   time.Time   // since when it is
	denied  time.Time   // since when 403 is the only answer; zero if it is not
	err     error       // how the last attempt ended; nil while one is under way
	ended   bool        // there is no watch now
	current *stream     // the last watch, unless again ended it
	overdue *time.Timer // fires when there has been none for too long
}

// run follows the kind until ctx ends.
func (f *follower) run(ctx context.Context) {
	defer f.join()
	slow := time.AfterFunc(slowAfter, func() { f.late(slowAfter) })
	defer slow.Stop()
	failing := time.AfterFunc(failingAfter, func() { f.late(failingAfter) })
	defer failing.Stop()
	lw := &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}
	reflector := cache.NewReflectorWithOptions(paged{lw}, &metav1.PartialObjectMetadata{}, f, cache.ReflectorOptions{
		Name: f.Kind.String(), TypeDescription: f.gvr.String(),
		// By default it pauses for up to a minute, in which an API server may be back unnoticed.
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
		if err != nil && !errors.Is(err, errListFirst) {
			f.log.V(1).Info("watch ended", "kind", f.gvr.String(), "err", err.Error())
			f.unlisted(err)
		}
		if await.Pause(ctx, pause) != nil {
			return
		}
	}
}

// paged has client-go list, and not use a streaming watch for that, which costs the API server
// twice as much.
type paged struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported tells client-go to list.
func (paged) IsWatchListSemanticsUnSupported() bool { return true }

// end ends the follower, and returns when it has ended.
func (f *follower) end() {
	f.stop()
	<-f.stopped
}

// join joins the list that may be under way. It ends with the context, but client-go does not wait
// for it.
func (f *follower) join() {
	f.mu.Lock()
	f.done = true
	if f.overdue != nil {
		f.overdue.Stop()
	}
	f.mu.Unlock()
	f.lists.Wait()
}

// watch begins a watch, unless the kind has to be listed first. It checks that twice: the kind may
// have fallen behind while the request was under way.
func (f *follower) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	f.mu.Lock()
	due := f.have < f.due
	if !due {
		f.err = nil
	}
	f.mu.Unlock()
	if due {
		return nil, errListFirst
	}
	within, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(answeredWithin, cancel)
	w, err := f.resource.Watch(within, o)
	if !late.Stop() && ctx.Err() == nil {
		err = fmt.Errorf("watch %s: not answered within %s: %w",
			f.gvr.GroupResource(), answeredWithin, context.DeadlineExceeded)
	}
	f.tried(ctx, err)
	if err != nil {
		cancel()
		return nil, err
	}
	end := time.Now()
	if o.TimeoutSeconds != nil {
		end = end.Add(time.Duration(*o.TimeoutSeconds) * time.Second)
	}
	s := &stream{Interface: w}
	s.ended = func() { cancel(); f.watchEnded(ctx, s, end) }
	if !f.watchBegan(s) {
		w.Stop()
		cancel()
		return nil, errListFirst
	}
	return s, nil
}

// stream reports when the reflector stops a watch.
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
