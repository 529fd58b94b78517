package policies

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Lookup asks for the stored objects of a resource that would go.
type Lookup struct {
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
	// Full says that more than their metadata is needed.
	Full bool
	// Selector selects the objects that some policy may protect; nil selects all.
	Selector *metav1.LabelSelector
	// Objects are those that would go; nil if all in Namespace do, or all in every namespace if
	// that is empty.
	Objects   []Caught
	Namespace string // the namespace of all of them; "" for several, or none

	goes map[types.UID]bool
}

// Bounds are how much of a Lookup is read: single objects while there are few, and pages of a list
// when there are more. Users decide how many objects there are, so what is past the bounds is
// refused (TooMany). A plan has the same bounds, so that it reports what the webhook would decide.
type Bounds struct {
	Single int   // objects that are read one by one
	Page   int64 // objects in a page
	Pages  int
}

// Most returns how many objects of a list are read.
func (b Bounds) Most() int { return int(b.Page) * b.Pages }

// BoundsOf returns the bounds of a Lookup. A condition that looks beyond metadata needs whole
// objects, of which few fit into memory at once.
func BoundsOf(full bool) Bounds {
	if full {
		return Bounds{Single: 64, Page: 20, Pages: 20}
	}
	return Bounds{Single: 256, Page: 50, Pages: 80}
}

// Single reports whether the objects of a Lookup are read one by one, and not in a list of all that
// its selector selects in its namespace.
func (l *Lookup) Single() bool { return l.Objects != nil && len(l.Objects) <= BoundsOf(l.Full).Single }

// Lookups returns the objects to read.
func (c *Cascade) Lookups() []Lookup {
	var out []Lookup
	for _, k := range c.kinds {
		k.Namespace = c.holds.Namespace
		out = append(out, c.lookup(k))
	}
	for _, o := range c.catch.Objects {
		i := slices.IndexFunc(out, func(l Lookup) bool { return l.Resource == o.Resource })
		if i < 0 {
			i = len(out)
			out = append(out, c.lookup(o))
			out[i].goes = map[types.UID]bool{}
		}
		l := &out[i]
		l.Objects = append(l.Objects, o)
		l.goes[o.UID] = true
		if o.Namespace != l.Namespace {
			l.Namespace = ""
		}
	}
	return out
}

func (c *Cascade) lookup(o Caught) Lookup {
	l := Lookup{Resource: o.Resource, Kind: o.Kind, Namespace: o.Namespace}
	var selectors []labels.Selector
	for _, p := range c.about(o.Resource.GroupResource()) {
		selectors = append(selectors, p.objects)
		l.Full = l.Full || p.looksBeyondMetadata()
	}
	l.Selector = common(selectors)
	return l
}

// Goes reports whether an object is one of those that a Lookup asks for.
func (l *Lookup) Goes(name string, uid types.UID) bool {
	if l.goes != nil {
		return l.goes[uid]
	}
	return !graph.Usual(l.Resource.GroupResource(), name)
}

// Saw judges an object of a Lookup; namespace is its Namespace, nil if it is in none. It returns
// true if enough is known to refuse.
func (c *Cascade) Saw(l *Lookup, obj, namespace map[string]any) bool {
	o := object(obj)
	if o.terminating() {
		return false
	}
	d := *c.q.deleting(obj, nil)
	d.Kind, d.Resource = l.Kind, l.Resource
	d.RequestKind, d.RequestResource = schema.GroupVersionKind{}, schema.GroupVersionResource{}
	d.Namespace, d.Name, d.NamespaceObject = o.namespace(), o.name(), namespace
	if d.isNamespace() {
		d.Namespace = d.Name
	}
	for _, by := range c.against(&d, &verdict{set: c.set, q: c.q}) {
		c.lose(by, lost{resource: l.Resource.GroupResource(), name: c.shortName(&d),
			confirm: howToConfirm(&d, propagation{policy: v1beta1.Background})})
	}
	c.early = c.early || slices.ContainsFunc(c.losses, func(l *loss) bool {
		return !l.by.onTrial() && len(l.objects) >= mostNames
	})
	return c.early
}

// shortName returns the name, with the namespace if that is not the request's. Names of RBAC
// objects may contain almost anything.
func (c *Cascade) shortName(d *Question) string {
	if !d.namespaced() || d.Namespace == c.q.Namespace || c.q.isNamespace() && d.Namespace == c.q.name() {
		return words.Printable(d.name())
	}
	return d.Namespace + "/" + words.Printable(d.name())
}

// against returns the policies that have something against the delete of an object.
func (c *Cascade) against(d *Question, v *verdict) (out []*compiled) {
	v.failing = func(p *compiled, why error) {
		c.fail(p, fmt.Errorf("of what would be deleted, %s: %w", d.Resource.GroupResource(), why))
	}
	c.set.protect(d, propagation{policy: v1beta1.Background}, newEvaluator(d, c.set.guards, "the delete of ", v))
	for _, f := range slices.Concat(v.refused, v.warned, v.audited) {
		if !slices.Contains(out, f.by) {
			out = append(out, f.by)
		}
	}
	return out
}

func (c *Cascade) lose(by *compiled, o lost) {
	i := slices.IndexFunc(c.losses, func(l *loss) bool { return l.by == by })
	if i < 0 {
		i = len(c.losses)
		c.losses = append(c.losses, &loss{by: by})
	}
	c.losses[i].objects = append(c.losses[i].objects, o)
}

// TooMany records that not all objects of a Lookup were read, because there are too many. Users can
// bring that about, so if the objects' own deletes are not judged it is refused, whatever the
// failurePolicy.
func (c *Cascade) TooMany(l *Lookup, read int) {
	if !c.binds() {
		c.catch.Complete = false
		return
	}
	gr := l.Resource.GroupResource()
	for _, p := range c.about(gr) {
		if c.overrun[p.key] {
			continue
		}
		c.overrun[p.key] = true
		c.v.add(p, finding{code: 403,
			text: fmt.Sprintf("%s may not be deleted: it holds too many %s to check which of them are protected (%d were "+
				"checked)", c.q.what(), gr, read),
			way: "Delete some of them first, or set inCascades of the policy to Ignore",
		}, p.actions)
	}
}

// Unread records that the objects of a Lookup could not be read.
func (c *Cascade) Unread(l *Lookup, why error) {
	for _, p := range c.about(l.Resource.GroupResource()) {
		c.fail(p, fmt.Errorf("%s that would be deleted cannot be read: %w", l.Resource.GroupResource(), why))
	}
}
