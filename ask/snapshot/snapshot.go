// Package snapshot reads a cluster, or one namespace of it, for insight: by one metadata-only list
// a kind, all at the same time, with the user's rights.
//
// Goroutines: one for each list, joined when they are read. One lock guards what has been read; no
// request is made under it.
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
	// pageSize is how many objects a page of a list has: enough that few lists have a second page,
	// and few enough that the API server need not hold all objects of a cluster in an answer.
	pageSize = 10_000
	// atOnce is how many kinds are listed at the same time.
	atOnce = 16
)

// Reader reads a cluster.
type Reader struct {
	Config    *rest.Config
	Discovery discovery.DiscoveryInterface
}

// Read lists all objects that can be collected in a namespace, or in the cluster if namespace is
// empty. It notes kinds that cannot be listed in the World. For a namespace, it also lists the
// cluster-scoped kinds of which objects name owners. An error means that nothing is known.
func (r *Reader) Read(ctx context.Context, namespace string) (*insight.World, error) {
	config := rest.CopyConfig(r.Config)
	config.QPS = -1 // it sends one list a kind
	config.WarningHandler = rest.NoWarnings{}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	found, unheard, err := kinds.Discover(r.Discovery, kinds.Ignored, nil)
	if found == nil {
		return nil, err
	}
	w := insight.NewWorld(namespace, found)
	for _, gv := range unheard {
		w.Unheard(gv, ReasonOf(err))
	}
	l := &lists{client: client, world: w, namespace: namespace}
	l.aggregated(ctx, found)
	l.all(ctx, slices.DeleteFunc(slices.Clone(found), func(k graph.Resource) bool {
		return !k.Collected || !k.Namespaced && namespace != ""
	}))
	for namespace != "" && ctx.Err() == nil {
		owners := w.OwnerKinds()
		if len(owners) == 0 {
			break
		}
		l.all(ctx, owners)
	}
	if w.GoesBeyond() {
		w.Missed("what is in other namespaces", false,
			"a cluster-scoped owner is being deleted: ask about that, or about the cluster with -A")
	}
	return w, ctx.Err()
}

// lists reads lists into a World.
type lists struct {
	client    metadata.Interface
	namespace string

	mu    sync.Mutex
	world *insight.World
}

// aggregated finds out which API groups other API servers serve, where APIServices are not listed
// anyway. If the user may not list them, the result is as if there were none.
func (l *lists) aggregated(ctx context.Context, found []graph.Resource) {
	for _, k := range found {
		if k.GroupResource() == kinds.APIServices && k.Listable && l.namespace != "" {
			services, _, _ := l.pages(ctx, k)
			for i := range services {
				l.world.Served(&services[i])
			}
		}
	}
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

// one lists a kind, or notes that it cannot be listed.
func (l *lists) one(ctx context.Context, k graph.Resource) {
	gr := k.GroupResource()
	objects, version, err := l.pages(ctx, k)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.world.NotListed(gr, apierrors.IsForbidden(err), ReasonOf(err))
		return
	}
	l.world.List(gr, version, objects)
}

// pages returns all objects of a kind, and the resourceVersion of the first page, which all pages
// have.
func (l *lists) pages(
	ctx context.Context, k graph.Resource,
) (objects []metav1.PartialObjectMetadata, version string, err error) {
	of := l.client.Resource(k.GroupResource().WithVersion(k.Version))
	var in metadata.ResourceInterface = of
	if k.Namespaced && l.namespace != "" {
		in = of.Namespace(l.namespace)
	}
	const begins = 3 // how often a list is begun, if its next page has expired
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

// ReasonOf returns an error in one printable line.
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
