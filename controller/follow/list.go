package follow

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/metaonly"
)

// listPage is how many objects of a kind are asked for at once. That bounds what the API server
// holds in memory for a list; smaller pages take longer.
const listPage = 5000

// list reads all objects of the kind by a consistent read, whatever client-go asks for. They go to
// the graph as they come, and the returned list has none.
func (f *follower) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	c := f.listBegins()
	if c == nil {
		return nil, context.Canceled
	}
	defer f.lists.Done()
	version, err := f.pages(ctx, c, f.page)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) { // the pages took too long
		version, err = f.pages(ctx, c, 0)
	}
	f.tried(ctx, err)
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: version}}, err
}

// listBegins returns a new list, or nil if the kind is not followed any more.
func (f *follower) listBegins() *coming {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done {
		return nil
	}
	f.lists.Add(1)
	f.begun++
	f.err = nil
	return &coming{number: f.begun, first: !f.listed}
}

// pages reads a list in pages of limit objects, or as a whole if that is 0, and returns its
// version.
func (f *follower) pages(ctx context.Context, c *coming, limit int64) (version string, err error) {
	f.open(c)
	version, err = f.eachPage(ctx, c, limit)
	if err == nil {
		f.flush(c)
		err = f.contradicted(c, version)
	}
	if err == nil {
		f.coming = c
	}
	return version, err
}

// contradicted returns an error, and tells the history, if a list cannot follow what was seen of
// its kind.
func (f *follower) contradicted(c *coming, version string) error {
	why := c.why
	if v, seen := graph.VersionNumber(version), f.Reached.Load(); why == "" && v != 0 && v < seen {
		why = fmt.Sprintf("resourceVersion %d, and it was %d before", v, seen)
	}
	if why == "" {
		return nil
	}
	f.history.contradicted(f.gvr, why)
	return fmt.Errorf("list %s: %w", f.Kind, ErrRewound)
}

// eachPage adds the objects of all pages, and returns the version of the first, from which the
// watch goes on. It bounds not the objects, but pages that bring nothing new: see metaonly.Pages.
func (f *follower) eachPage(ctx context.Context, c *coming, limit int64) (version string, err error) {
	pages := metaonly.Pages{}
	for page := (metav1.ListOptions{Limit: limit}); ; {
		within, cancel := context.WithTimeout(ctx, failingAfter)
		m, err := f.resource.Page(within, page, func(m *metav1.PartialObjectMetadata) {
			pages.Saw(&m.ObjectMeta)
			f.take(c, m)
		})
		cancel()
		if err != nil {
			return "", err
		}
		if page.Continue == "" {
			version = m.ResourceVersion
		}
		if err := pages.Next(m.Continue); err != nil {
			return "", fmt.Errorf("list %s: %w", f.gvr.GroupResource(), err)
		}
		if page.Continue = m.Continue; page.Continue == "" || c.why != "" {
			return version, nil
		}
	}
}
