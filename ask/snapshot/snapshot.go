// Package snapshot reads a cluster, or one namespace of it, for insight: one metadata-only list a
// kind, all at the same time, with the rights of whoever asks.
//
// Goroutines: one for each list, joined when they are read; of a Follower, discovery and a
// reflector for each kind, joined by Close. Locks: one of what has been read, under which nothing
// is asked; and one of Worlds that are being brought up to date, for which others wait that want
// the same.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/metaonly"
	"github.com/weir-dev/weir/controller/words"
)

const (
	// pageSize is how many objects a page of a list has: enough that few lists have a second one,
	// and few enough that the API server does not have to hold a whole cluster's objects in an
	// answer.
	pageSize = 10_000
	// atOnce is how many kinds are listed at the same time.
	atOnce = 16
)

// Reader reads.
type Reader struct {
	Config    *rest.Config
	Discovery discovery.DiscoveryInterface
	// Listing is told of each kind that Read begins to list, from many goroutines; nil: nobody is.
	Listing func(kind string)
}

// Read lists everything that can be collected in a namespace, or in the cluster if it is empty.
// Kinds that cannot be listed are noted in the World. Of a namespace, owners that are
// cluster-scoped are read too: where an object names one, its kind is listed; where one of those is
// being deleted, all the cluster is, as far as the user may list it. An error means that nothing is
// known.
func (r *Reader) Read(ctx context.Context, namespace string) (*insight.World, error) {
	client, err := r.metadata()
	if err != nil {
		return nil, err
	}
	found, unheard, err := kinds.Discover(r.Discovery, kinds.Ignored, nil)
	if found == nil {
		return nil, err
	}
	w := insight.NewWorld(namespace, found)
	for _, gv := range unheard {
		w.Unheard(gv, ReasonOf(err))
	}
	l := &lists{client: client, world: w, namespace: namespace, listing: r.Listing}
	services := l.aggregated(ctx, found)
	var first, apart []graph.Resource
	for _, k := range found {
		switch {
		case !k.Collected || !k.Namespaced && namespace != "" || k.GroupResource() == services:
		case w.Aggregated(k.GroupResource()):
			apart = append(apart, k)
		default:
			first = append(first, k)
		}
	}
	// Versions of two storages say nothing about each other, and the order of lists does.
	for _, round := range [][]graph.Resource{first, apart} {
		l.all(ctx, round)
		w.NextRound()
	}
	for namespace != "" && ctx.Err() == nil {
		owners := w.OwnerKinds()
		if len(owners) == 0 {
			break
		}
		l.all(ctx, owners)
		w.NextRound()
	}
	switch {
	case ctx.Err() != nil: // not all that was to be read was
		return nil, ctx.Err()
	case w.Widens():
		return r.widen(ctx, w)
	}
	return w, nil
}

// widen reads the cluster in place of a namespace. Who may not list all of it keeps what is known
// of the namespace, which says what it lacks.
func (r *Reader) widen(ctx context.Context, narrow *insight.World) (*insight.World, error) {
	wide, err := r.Read(ctx, "")
	if err != nil {
		return nil, err
	}
	if kind, reason := wide.Lacks(narrow); kind != "" {
		narrow.Missed("what is in other namespaces", true, fmt.Sprintf("%s there: %s", kind, reason))
		return narrow, nil
	}
	wide.Asked = narrow.Namespace
	return wide, nil
}

// Elsewhere looks in all namespaces for owners that are not in the World's: one list of each of
// their kinds.
func (r *Reader) Elsewhere(ctx context.Context, w *insight.World, sought []insight.Sought) error {
	client, err := r.metadata()
	if err != nil {
		return err
	}
	everywhere := &lists{client: client}
	for _, s := range sought {
		objects, _, err := everywhere.pages(ctx, s.Kind)
		if err != nil {
			w.Missed(s.Kind.GroupResource().String()+" in other namespaces (an owner may be there)", apierrors.IsForbidden(err), ReasonOf(err))
			continue
		}
		w.Elsewhere(s, insight.Pointers(objects))
	}
	return nil
}

// metadata is a client that only the API server slows down: it is for one list a kind.
func (r *Reader) metadata() (metadata.Interface, error) {
	config := rest.CopyConfig(r.Config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	return client, nil
}

// lists takes kinds into a World.
type lists struct {
	client    metadata.Interface
	namespace string
	listing   func(kind string) // see Reader

	mu    sync.Mutex
	world *insight.World
}

// aggregated finds out which API groups other API servers serve, and returns the kind that says so
// if the World has its objects by that, too: none is listed twice. Whoever may not list APIServices
// is told what holds where there are none.
func (l *lists) aggregated(ctx context.Context, found []graph.Resource) (listed schema.GroupResource) {
	at := slices.IndexFunc(found, func(k graph.Resource) bool { return k.GroupResource() == kinds.APIServices && k.Listable })
	if at < 0 {
		return schema.GroupResource{}
	}
	if k := found[at]; k.Collected && l.namespace == "" {
		l.one(ctx, k)
		return k.GroupResource()
	}
	services, _, _ := l.pages(ctx, found[at])
	for i := range services {
		l.world.Served(&services[i])
	}
	return schema.GroupResource{}
}

func (l *lists) all(ctx context.Context, wanted []graph.Resource) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, k := range wanted {
		group.Go(func() error {
			l.one(ctx, k)
			return nil
		})
	}
	_ = group.Wait()
}

// one lists a kind. One that cannot be listed does not keep the others from being told.
func (l *lists) one(ctx context.Context, k graph.Resource) {
	gr := k.GroupResource()
	if l.listing != nil {
		l.listing(gr.String())
	}
	objects, version, err := l.pages(ctx, k)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.world.NotListed(gr, apierrors.IsForbidden(err), ReasonOf(err))
		return
	}
	l.world.List(gr, version, objects)
}

// pages are all objects of a kind, and the resourceVersion at which they were: that of the first
// page, as it is of all.
func (l *lists) pages(ctx context.Context, k graph.Resource) (objects []metav1.PartialObjectMetadata, version string, err error) {
	of := l.client.Resource(k.GroupResource().WithVersion(k.Version))
	var in metadata.ResourceInterface = of
	if k.Namespaced && l.namespace != "" {
		in = of.Namespace(l.namespace)
	}
	const begins = 3 // how often a list is begun again whose next page has expired
	for range begins {
		objects = nil
		read := metaonly.Pages{}
		options := metav1.ListOptions{Limit: pageSize}
		for {
			var page *metav1.PartialObjectMetadataList
			if page, err = in.List(ctx, options); err != nil {
				break
			}
			if objects == nil {
				objects = page.Items
			} else {
				objects = append(objects, page.Items...)
			}
			if options.Continue = page.Continue; options.Continue == "" {
				return objects, page.ResourceVersion, nil
			}
			if len(page.Items) > 0 {
				read.Saw(&page.Items[0].ObjectMeta)
			}
			if err = read.Next(page.Continue); err != nil {
				break
			}
		}
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			break
		}
	}
	return nil, "", err
}

// ReasonOf is an error in one line, as it is told.
func ReasonOf(err error) string {
	if err == nil {
		return "no answer"
	}
	var status apierrors.APIStatus
	text := err.Error()
	if errors.As(err, &status) && status.Status().Message != "" {
		text = status.Status().Message
	}
	return words.Printable(strings.Join(strings.Fields(text), " "))
}
