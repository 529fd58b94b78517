package snapshot

import (
	"context"
	"maps"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

// Follower keeps the metadata of all objects that can be collected in a cluster, or in one
// namespace and cluster-scoped, and makes Worlds from it. It has one list and one watch a kind,
// with the user's rights.
type Follower struct {
	client    metadata.Interface
	reader    *Reader
	namespace string // the only one that is followed; empty: all are
	logger    logr.Logger
	stop      context.CancelFunc
	working   sync.WaitGroup // discovery, and a reflector for each kind

	mu      sync.Mutex
	kinds   map[schema.GroupResource]*followed
	all     []graph.Resource // the served kinds, also those that are not followed
	unheard map[string]string
	lost    string           // why discovery fails; empty: it does not
	version int64            // counts changes
	in      map[string]int64 // by namespace: the version of the last change
	changed await.Change     // notified of each change

	world *insight.World // of all that is known, up to date; nil: it has to be made
}

// rediscovery is the interval of discovery.
const rediscovery = 10 * time.Second

// Follow begins to follow a namespace and cluster-scoped objects, or the whole cluster if namespace
// is empty, until ctx ends or Close is called. An error means that nothing is known.
func (r *Reader) Follow(ctx context.Context, namespace string) (*Follower, error) {
	client, err := r.metadata()
	if err != nil {
		return nil, err
	}
	f := newFollower(client, r, namespace)
	ctx, f.stop = context.WithCancel(ctx)
	if err := f.discover(ctx); err != nil {
		f.Close()
		return nil, err
	}
	f.working.Go(func() {
		tick := time.NewTicker(rediscovery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = f.discover(ctx) // the error is in Health
			}
		}
	})
	return f, nil
}

// Close stops following, and joins all goroutines.
func (f *Follower) Close() {
	f.stop()
	f.working.Wait()
}

func newFollower(client metadata.Interface, r *Reader, namespace string) *Follower {
	return &Follower{
		client: client, reader: r, namespace: namespace, logger: logr.Discard(),
		kinds: map[schema.GroupResource]*followed{}, in: map[string]int64{},
	}
}

// discover begins to follow new kinds, and stops following those that are not served any more.
func (f *Follower) discover(ctx context.Context) error {
	f.mu.Lock()
	before := f.all
	f.mu.Unlock()
	if c, ok := f.reader.Discovery.(discovery.CachedDiscoveryInterface); ok {
		c.Invalidate()
	}
	found, unheard, err := kinds.Discover(f.reader.Discovery, kinds.Ignored, before)
	f.mu.Lock()
	defer f.mu.Unlock()
	if found == nil {
		if why := ReasonOf(err); f.lost != why {
			f.lost = why
			f.renew()
		}
		return err
	}
	silent := map[string]string{}
	for _, gv := range unheard {
		silent[gv] = ReasonOf(err)
	}
	if f.lost != "" || !maps.Equal(f.unheard, silent) || !reflect.DeepEqual(f.all, found) {
		f.renew()
	}
	f.lost, f.all, f.unheard = "", found, silent
	served := map[schema.GroupResource]bool{}
	for _, k := range found {
		gr := k.GroupResource()
		if !k.Collected {
			continue
		}
		served[gr] = true
		if old := f.kinds[gr]; old == nil || old.kind.Version != k.Version {
			if old != nil {
				old.stop()
			}
			f.kinds[gr] = f.follow(ctx, k)
		}
	}
	for gr, k := range f.kinds {
		if !served[gr] {
			k.stop()
			delete(f.kinds, gr)
		}
	}
	return nil
}

func (f *Follower) follow(ctx context.Context, k graph.Resource) *followed {
	ctx, stop := context.WithCancel(ctx)
	one := &followed{follower: f, kind: k, stop: stop, objects: map[string]map[types.UID]*metav1.PartialObjectMetadata{}}
	everywhere := f.client.Resource(k.GroupResource().WithVersion(k.Version))
	var of metadata.ResourceInterface = everywhere
	if k.Namespaced && f.namespace != "" {
		of = everywhere.Namespace(f.namespace)
	}
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := of.List(ctx, o)
			one.answered(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := of.Watch(ctx, o)
			one.answered(err)
			return w, err
		},
	}, f.client), &metav1.PartialObjectMetadata{}, one, cache.ReflectorOptions{
		Logger: &f.logger, Name: k.GroupResource().String(),
	})
	reflector.WatchListPageSize = pageSize
	f.working.Go(func() { reflector.RunWithContext(ctx) })
	return one
}

// renew records that something else than an object has changed. The caller holds mu.
func (f *Follower) renew() {
	f.note("")
	f.world = nil
}

// note records a change in a namespace; an empty one stands for cluster-scoped changes, which may
// matter in all namespaces. The caller holds mu.
func (f *Follower) note(namespace string) {
	f.version++
	f.in[namespace] = f.version
	f.changed.Notify()
}

// Changed returns the version of the Follower, and a channel that is closed at the next change.
func (f *Follower) Changed() (version int64, further <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version, f.changed.Next()
}

// Version returns the version of the last change that matters to the World of a namespace, or of
// the cluster if namespace is empty.
func (f *Follower) Version(namespace string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if namespace == "" {
		return f.version
	}
	return max(f.in[namespace], f.in[""])
}

// Listed waits until every kind has been listed that can be, or ctx ends.
func (f *Follower) Listed(ctx context.Context) {
	for {
		_, further := f.Changed()
		if f.Health().Waiting == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-further:
		}
	}
}
