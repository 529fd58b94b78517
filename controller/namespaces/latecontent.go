package namespaces

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/request"
)

const (
	// lateFor is how long after a namespace is gone content may still turn up in it. The API server
	// gives up on a request after 34 s, including its calls of webhooks (RB 6.18); the rest is for the
	// watch.
	lateFor = 40 * time.Second
	// lateTrial is how long deletes of late content are retried.
	lateTrial = 10 * time.Minute
)

// departs begins to look for content that turns up late in a namespace that is gone. Every replica
// has seen the namespace go, so a new leader goes on with that. If there is only one replica and it
// ends, that is lost.
func (d *Drainer) departs(name string) {
	if d.Companion {
		return
	}
	d.mu.Lock()
	maps.DeleteFunc(d.gone, func(_ string, since time.Time) bool { return time.Since(since) > lateTrial })
	d.gone[name] = time.Now()
	leading := d.leading
	d.mu.Unlock()
	if leading {
		d.listen(name)
		d.wake(name, "it is gone", 0)
	}
}

// forget ends the look for late content in a namespace, unless another one of its name has gone
// since.
func (d *Drainer) forget(name string, since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone[name].Equal(since) {
		delete(d.gone, name)
	}
}

// late deletes what has turned up in a namespace that is gone.
func (d *Drainer) late(ctx context.Context, name string) (outcome, error) {
	d.mu.Lock()
	since, ok := d.gone[name]
	d.mu.Unlock()
	if !ok {
		return finished, nil
	}
	age := time.Since(since)
	err := d.removeLate(ctx, name, since, d.lateContent(name))
	switch {
	case err != nil && age < lateTrial:
		return pending, err
	case err == nil && age < lateFor:
		return recheck(lateFor - age), nil
	}
	d.forget(name, since)
	return finished, err
}

// lateContent returns the objects that the graph has in a namespace of this name and that do not
// terminate.
func (d *Drainer) lateContent(name string) (refs []graph.Ref) {
	for _, k := range d.Store.Inventory(name).Kinds {
		for v := range d.Store.Content(name, k.Kind) {
			if !v.Deleting {
				v.ResourceVersion = ""
				refs = append(refs, v.Ref)
			}
		}
	}
	return refs
}

// removeLate deletes objects that were found in a namespace of this name, if no such namespace
// exists. The namespace is read after the objects were found, so they cannot belong to one that was
// created later. If there is another namespace of that name, they may belong to it, and are kept.
func (d *Drainer) removeLate(ctx context.Context, name string, since time.Time, refs []graph.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	_, err := d.Namespaces.Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		d.forget(name, since)
		return nil
	case !request.NoSuchObject(err, kinds.Namespaces, name):
		return fmt.Errorf("find out whether namespace %s is gone: %w", name, err)
	}
	kept := make([]error, len(refs))
	d.each(len(refs), func(i int) {
		err := d.Requester.Delete(ctx, refs[i], metav1.DeletePropagationBackground)
		if err == nil {
			d.Log.Info("deleted", "object", refs[i].String(), "uid", refs[i].UID,
				"why", "it was created in a namespace that was being deleted, and is gone")
		}
		// Any other 404 is not about the object: webhooks with a namespaceSelector cannot be asked about
		// it.
		if err == nil || apierrors.IsConflict(err) && !request.RefusedByWebhook(err) ||
			request.NoSuchObject(err, refs[i].Kind, refs[i].Name) {
			return
		}
		kept[i] = fmt.Errorf("delete %s, whose namespace is gone: %w", refs[i], err)
	})
	return cmp.Or(kept...)
}
