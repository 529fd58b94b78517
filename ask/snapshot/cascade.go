package snapshot

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/policies"
)

// cascade judges what goes along, as the webhook would. An error says that what could be read is
// not refused, and that not all could.
func (p *Policies) cascade(ctx context.Context, q policies.Question) (policies.Decision, error) {
	c := p.set.Cascade(q)
	if c == nil {
		return policies.Decision{Allowed: true}, nil
	}
	unread := p.search(ctx, c)
	d := c.Decide(nil)
	if unread != nil && d.Allowed {
		return d, unread
	}
	return p.disclosed(q, d, func(q policies.Question) policies.Decision { return c.Decide(q.Answers) }), nil
}

// search reads what a Cascade asks for, until enough is known. An error says why not all could be
// read.
func (p *Policies) search(ctx context.Context, c *policies.Cascade) (unread error) {
	for _, l := range c.Lookups() {
		enough, err := p.lookup(ctx, c, &l)
		if err != nil {
			unread = err
		}
		if enough {
			break
		}
	}
	return unread
}

// protected are all objects that go along which a policy protects, as far as the user may know, and
// as is read.
func (p *Policies) protected(ctx context.Context, q policies.Question) (out []insight.Protected) {
	c := p.set.Cascade(q)
	if c == nil {
		return nil
	}
	c.All()
	_ = p.search(ctx, c) // the verdict says so
	for _, one := range c.Protected(p.listed(q.Answers, c.Decide(nil).Discloses)) {
		out = append(out, insight.Protected{Object: one.Resource.String() + "/" + one.Name, By: one.By.String(),
			Confirm: one.Confirm})
	}
	return out
}

// lookup judges the objects of a Lookup: no more than the webhook reads, which refuses what is past
// that. How long reading takes the webhook is not known here. True: enough is known.
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
		most := policies.BoundsOf(true)
		all, err = p.lister.Some(ctx, l.Resource, l.Namespace, true, l.Selector, most.Page, most.Pages, func(object map[string]any, m *metav1.ObjectMeta) (_ bool, err error) {
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

// seen is told of an object, which is made where it is needed; nil: it is gone. True: enough is
// known.
type seen func(object func() (map[string]any, error), m *metav1.ObjectMeta) (enough bool, err error)

// each tells of the objects of a Lookup of few.
func (p *Policies) each(ctx context.Context, l *policies.Lookup, saw seen) (enough bool, err error) {
	for _, o := range l.Objects {
		enough, err = saw(func() (map[string]any, error) { return p.object(ctx, l, o) }, &metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID})
		if enough || err != nil {
			break
		}
	}
	return enough, err
}

// some tells of the first objects that a list of their metadata would have, by the World: as many
// as are read at most. all is false if there are more.
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

// place is a kind in a namespace, or in all of them.
type place struct {
	kind      schema.GroupResource
	namespace string
}

// inOrder are the objects there, in the order of a list. The World is asked once.
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

// object is one that goes, as a map; nil if it is gone.
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
