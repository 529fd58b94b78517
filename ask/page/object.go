package page

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
)

// wholeObject is an object with its resource.
type wholeObject struct {
	gvr schema.GroupVersionResource
	*unstructured.Unstructured
}

// named is the object that a question is about.
type named struct {
	insight.Object
	whole func(context.Context) (*wholeObject, error)
}

func (p *Page) named(q url.Values) (*named, error) {
	o := insight.Object{Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name")}
	if o.Kind == "" || o.Name == "" {
		return nil, bad("kind, name: name an object")
	}
	gvr, uid, err := p.Follower.Find(o.Kind, o.Namespace, o.Name)
	if err != nil {
		return nil, err
	}
	o.UID = uid
	return &named{o, func(ctx context.Context) (*wholeObject, error) {
		u, err := p.Object(ctx, gvr, o.Namespace, o.Name)
		if apierrors.IsNotFound(err) || err == nil && u.GetUID() != uid {
			return nil, fmt.Errorf("%w: %s has gone", snapshot.ErrGone, o)
		}
		return &wholeObject{gvr, u}, err
	}}, nil
}

// world is an insight.World, the least version of the Follower that it has, and why it is
// incomplete; empty: it is complete.
type world struct {
	*insight.World
	version int64
	partly  string
}

// world returns what is known of an object and of what is connected with it.
func (p *Page) world(o *named) (*world, error) {
	version := p.Follower.Version(o.Namespace)
	made, partly, err := p.Follower.About(o.Object)
	return &world{made, version, partly}, err
}

// missing returns why an object that was found is not in a World that was made later.
func (o *named) missing(w *insight.World) error {
	if w.Unreadable(schema.ParseGroupResource(o.Kind)) {
		return fmt.Errorf("whether %s is still there is not known: %s cannot be followed now", o, o.Kind)
	}
	return fmt.Errorf("%w: %s has gone", snapshot.ErrGone, o)
}

// object answers with an object, its owners, and why it is as it is.
func (p *Page) object(ctx context.Context, q url.Values) (any, error) {
	o, err := p.named(q)
	if err != nil {
		return nil, err
	}
	version, err := p.fresh(q, o.Namespace)
	if err != nil {
		return nil, err
	}
	leave, err := p.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	w, err := p.world(o)
	if err != nil {
		return nil, err
	}
	var facts insight.Facts
	unread := ""
	if whole, err := o.whole(ctx); err == nil {
		facts = p.Facts(ctx, w.World, whole.gvr, whole.Unstructured)
	} else if errors.Is(err, snapshot.ErrGone) {
		return nil, err
	} else {
		unread = err.Error() // metadata tells most of it
	}
	now := time.Now()
	why, ok := w.Why(o.UID, facts, now)
	if !ok {
		return nil, o.missing(w.World)
	}
	why.WithFlags(p.Flags)
	why.Causes = why.Causes[:min(len(why.Causes), mostListed)]
	return map[string]any{
		"version": version, "object": o.Object, "owners": w.Owners(o.UID, now), "why": why,
		"unread": w.Unread(), "notRead": unread,
	}, nil
}
