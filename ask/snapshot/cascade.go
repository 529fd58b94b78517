package snapshot

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies"
)

// cascade judges what would be deleted with an object, as the webhook would. An error says that
// what could be read is not refused, but that not everything could be read.
func (p *Policies) cascade(ctx context.Context, q policies.Question) (policies.Decision, error) {
	c := p.set.Cascade(q)
	if c == nil {
		return policies.Decision{Allowed: true}, nil
	}
	var unread error
	for _, l := range c.Lookups() {
		enough, err := p.lookup(ctx, c, &l)
		if err != nil {
			unread = err
		}
		if enough {
			break
		}
	}
	d := c.Decide(nil)
	if unread != nil && d.Allowed {
		return d, unread
	}
	return p.disclosed(q, d, func(q policies.Question) policies.Decision { return c.Decide(q.Answers) }), nil
}

// lookup judges the objects of a Lookup, but no more than the webhook reads, which refuses what is
// beyond. The time that the webhook needs for it is not known here. It returns true once enough is
// known.
func (p *Policies) lookup(ctx context.Context, c *policies.Cascade, l *policies.Lookup) (enough bool, err error) {
	read := 0
	var spaceless error // why the labels of a namespace are not known
	saw := func(object func() (map[string]any, error), m *metav1.ObjectMeta) (bool, error) {
		read++
		if !l.Goes(m.Name, m.UID) {
			return false, nil
		}
		var ns, whole map[string]any
		if ns, spaceless = p.namespace(ctx, m.Namespace); spaceless != nil {
			return false, spaceless
		}
		whole, err := object()
		if err != nil || whole == nil {
			return false, err
		}
		return c.Saw(l, whole, ns), nil
	}
	all := true
	switch {
	case l.Single():
		enough, err = p.each(ctx, l, saw)
	case l.Full:
		all, err = p.lister.Some(ctx, l, func(object map[string]any, m *metav1.ObjectMeta) (_ bool, err error) {
			enough, err = saw(func() (map[string]any, error) { return object, nil }, m)
			return enough, err
		})
	default:
		enough, all, err = p.some(l, policies.BoundsOf(false).Most(), saw)
	}
	switch {
	case apierrors.IsNotFound(err): // the kind is not served any more
		return false, nil
	case spaceless != nil:
		return false, spaceless
	case err != nil:
		what := l.Resource.GroupResource().String() + " that would also be deleted"
		p.world.Missed(what, apierrors.IsForbidden(err), ReasonOf(err))
		return false, fmt.Errorf("%s could not be read: %s", what, ReasonOf(err))
	case !enough && !all:
		c.TooMany(l, read)
	}
	return enough, nil
}

// seen judges an object, which is read only if it is needed, and nil if it is gone. It returns true
// once enough is known.
type seen func(object func() (map[string]any, error), m *metav1.ObjectMeta) (enough bool, err error)

// each judges the objects of a Lookup that names them.
func (p *Policies) each(ctx context.Context, l *policies.Lookup, saw seen) (enough bool, err error) {
	for _, o := range l.Objects {
		enough, err = saw(func() (map[string]any, error) { return p.object(ctx, l, o) },
			&metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID})
		if enough || err != nil {
			break
		}
	}
	return enough, err
}

// some judges the first most objects that a metadata list would have, from the World. all is false
// if there are more.
func (p *Policies) some(l *policies.Lookup, most int, saw seen) (enough, all bool, err error) {
	selector := labels.Everything()
	if l.Selector != nil {
		if selector, err = metav1.LabelSelectorAsSelector(l.Selector); err != nil {
			return false, false, err
		}
	}
	objects, err := p.inOrder(l.Resource.GroupResource(), l.Namespace)
	if err != nil {
		return false, false, err
	}
	for _, m := range objects {
		if !selector.Matches(labels.Set(m.Labels)) {
			continue
		}
		if most--; most < 0 {
			return false, false, nil
		}
		enough, err = saw(func() (map[string]any, error) { return asMap(m, l.Kind) }, &m.ObjectMeta)
		if enough || err != nil {
			return enough, true, err
		}
	}
	return false, true, nil
}

// place is a kind in a namespace, or in all namespaces if that is empty.
type place struct {
	kind      schema.GroupResource
	namespace string
}

// inOrder returns the objects of a place in the order of a list. It asks the World once for each
// place.
func (p *Policies) inOrder(kind schema.GroupResource, namespace string) ([]*metav1.PartialObjectMetadata, error) {
	in := place{kind, namespace}
	if objects, known := p.lists[in]; known {
		return objects, nil
	}
	objects, all := p.world.Listed(kind, namespace)
	if !all {
		return nil, fmt.Errorf("%s of other namespaces than %s were not read", kind, p.world.Namespace)
	}
	p.lists[in] = objects
	return objects, nil
}

// object returns an object that would also be deleted as a map, or nil if it is gone.
func (p *Policies) object(ctx context.Context, l *policies.Lookup, o policies.Caught) (map[string]any, error) {
	if !l.Full {
		return p.metaOf(o.UID, l.Kind)
	}
	u, err := p.objects.Resource(l.Resource).Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return u.Object, nil
}
