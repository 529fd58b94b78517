package follow

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-dev/weir/controller/metaonly"
)

// listPage is how many objects of a kind are asked for at once. That bounds what the API server
// holds for a list; in small pages it takes longer.
const listPage = 5000

// list reads all objects of the kind, as they are now: never older ones, whatever client-go would
// be content with. The first time the graph has them as they come, and what is returned has none.
func (f *follower) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	if !f.listBegins() {
		return nil, context.Canceled
	}
	defer f.lists.Done()
	f.trying()
	list, err := f.pages(ctx, f.page)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) { // the pages took so long that the API server has forgotten their version
		list, err = f.pages(ctx, 0)
	}
	f.tried(ctx, err)
	return list, err
}

// listBegins notes that there is a list now. False: the kind is not followed any more.
func (f *follower) listBegins() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.done {
		f.lists.Add(1)
	}
	return !f.done
}

// pages reads a list in pages of some objects; 0: as a whole.
func (f *follower) pages(ctx context.Context, limit int64) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	if !f.unseen() {
		return list, f.eachPage(ctx, limit, &list.ListMeta, func(m *metav1.PartialObjectMetadata) {
			trim(m)
			list.Items = append(list.Items, *m)
		})
	}
	f.open()
	err := f.eachPage(ctx, limit, &list.ListMeta, f.take)
	switch {
	case err == nil:
		f.first.version = list.ResourceVersion
	case ctx.Err() == nil: // else who ended it has the graph forget the whole kind, or ends the process
		f.abandon()
	}
	return list, err
}

// eachPage hands on the objects of all pages, and notes the version, which is that of the first.
// However many objects there are, pages that bring none of them end it.
func (f *follower) eachPage(ctx context.Context, limit int64, is *metav1.ListMeta, take func(*metav1.PartialObjectMetadata)) error {
	pages := metaonly.Pages{}
	for page := (metav1.ListOptions{Limit: limit}); ; {
		m, err := metaonly.Page(witnessed(ctx, f.failed), f.resource, page, func(m *metav1.PartialObjectMetadata) {
			pages.Saw(&m.ObjectMeta)
			take(m)
		})
		if err != nil {
			return err
		}
		if page.Continue == "" {
			is.ResourceVersion = m.ResourceVersion
		}
		if err := pages.Next(m.Continue); err != nil {
			return fmt.Errorf("list %s: %w", f.gvr.GroupResource(), err)
		}
		if page.Continue = m.Continue; page.Continue == "" {
			return nil
		}
	}
}
