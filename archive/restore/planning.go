package restore

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// An item is a recorded object.
type item struct {
	ref    Ref
	record Record
	kind   Kind
	step   *Step
	made   bool    // this restore made what has its name
	needs  []*item // what must be there before it
	owners []*item // what should be there before it: a reference can be added later
	state  visit
	level  int
}

const restored = "it was restored"

type planning struct {
	World
	Options
	items  []*item
	byRef  map[Ref]*item
	kinds  map[schema.GroupResource]Kind
	byKind map[schema.GroupKind]schema.GroupResource
	out    []*Step
	last   []*Step // after everything else
	floor  int     // the least level of the next steps; volumes are freed before all others
	top    int     // the highest level so far
}

func newPlanning(w World, o Options) *planning {
	p := &planning{World: w, Options: o, byRef: map[Ref]*item{}, kinds: map[schema.GroupResource]Kind{},
		byKind: map[schema.GroupKind]schema.GroupResource{}, floor: 1}
	for _, r := range w.Records {
		ref := RefOf(r)
		if old := p.byRef[ref]; old != nil {
			old.record = r
			continue
		}
		i := &item{ref: ref, record: r}
		p.byRef[ref] = i
		p.items = append(p.items, i)
	}
	slices.SortFunc(p.items, func(a, b *item) int {
		return cmp.Or(cmp.Compare(rankOf(a.ref.Kind), rankOf(b.ref.Kind)), compareRefs(a.ref, b.ref))
	})
	for _, k := range w.Kinds {
		p.serve(k)
	}
	for _, i := range p.items {
		if k, ok := defined(i); ok && !p.serves(k.GroupResource) {
			p.serve(k)
		}
	}
	return p
}

func (p *planning) serve(k Kind) {
	p.kinds[k.GroupResource] = k
	p.byKind[schema.GroupKind{Group: k.Group, Kind: k.Kind}] = k.GroupResource
}

func (p *planning) serves(gr schema.GroupResource) bool { _, ok := p.kinds[gr]; return ok }

// defined returns the kind that a recorded definition brings back.
func defined(i *item) (k Kind, ok bool) {
	if i.ref.Kind != definitions {
		return k, false
	}
	o := i.record.Object.Object
	k = Kind{Custom: true, definition: i.ref}
	k.Group, _, _ = unstructured.NestedString(o, "spec", "group")
	k.Resource, _, _ = unstructured.NestedString(o, "spec", "names", "plural")
	k.Kind, _, _ = unstructured.NestedString(o, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(o, "spec", "scope")
	k.Namespaced = scope == "Namespaced"
	versions, _, _ := unstructured.NestedSlice(o, "spec", "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["served"] == true {
			k.Versions = append(k.Versions, fmt.Sprint(v["name"]))
			_, status, _ := unstructured.NestedMap(v, "subresources", "status")
			k.Status = k.Status || status
		}
	}
	return k, k.Kind != "" && len(k.Versions) > 0
}

// judge sets what becomes of an object, apart from its owners.
func (p *planning) judge(i *item) {
	old, live := i.record.Object, p.Live[i.ref]
	s := &Step{Ref: i.ref, Version: i.record.Resource.Version, UID: old.GetUID(), Live: live, Object: old}
	i.kind = p.kinds[i.ref.Kind]
	i.made = live != nil && live.GetAnnotations()[v1beta1.RestoredAnnotation] == p.mark(i)
	if p.Only != nil && !p.Only(i.ref) {
		return
	}
	i.step = s
	s.Under = p.under(i)
	if live == nil || live.GetUID() != old.GetUID() && !i.made {
		if s.Why = p.left(i); s.Why != "" {
			s.Outcome = Left
			return
		}
		if s.Why = p.blocked(i); s.Why != "" {
			s.Outcome = Blocked
			return
		}
	}
	if why := p.Unread[i.ref]; why != "" {
		s.Outcome, s.Why = Unknown, "the object that has its name could not be read: "+why
		return
	}
	switch {
	case live == nil:
		s.Outcome = Create
		p.prepare(i)
	case live.GetDeletionTimestamp() != nil:
		s.Outcome = Ending
		s.Why = "what has its name is being deleted: " +
			"restore again when that is gone (kubectl weir why says what it waits for)"
	case live.GetUID() == old.GetUID():
		s.Outcome, s.Why = There, "it was not deleted"
	case i.made:
		s.Outcome, s.Why = There, restored
	case Equal(i.ref.Kind, old, live):
		s.Outcome, s.Why = There, "an equal object has its name"
	case p.Replace:
		s.Outcome = Replace
		s.Why = "replaces another object, made at " + madeAt(live)
		p.prepare(i)
	default:
		s.Outcome = Taken
		s.Why = fmt.Sprintf("another object has its name, made at %s, and is kept; "+
			"--diff shows both, --replace puts this one in its place", madeAt(live))
	}
}

func madeAt(o *unstructured.Unstructured) string {
	return o.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z")
}

// under returns where an object is shown: below its first recorded owner, or its namespace.
func (p *planning) under(i *item) Ref {
	for _, o := range i.record.Object.GetOwnerReferences() {
		if ref, _ := p.ownerOf(i, o); p.byRef[ref] != nil {
			return ref
		}
	}
	if ns := NamespaceOf(i.ref); p.byRef[ns] != nil {
		return ns
	}
	return Ref{}
}

func (p *planning) mark(i *item) string { return p.Tree + "/" + string(i.record.Object.GetUID()) }

// blocked returns why an object cannot be made: its kind, the version in which it was recorded, or
// its namespace is not there.
func (p *planning) blocked(i *item) string {
	if !p.serves(i.ref.Kind) {
		return "the cluster does not serve its kind: install what defines it, and restore again"
	}
	if d := p.byRef[i.kind.definition]; d != nil && p.Only != nil && !p.Only(d.ref) {
		return fmt.Sprintf("the cluster does not serve its kind: leave --only out, or name %s, too", d.ref)
	}
	if version := i.record.Resource.Version; !slices.Contains(i.kind.Versions, version) {
		return fmt.Sprintf("it was recorded as %s, which is not served any more: --diff shows it, to be written as %s",
			version, i.kind.Versions[0])
	}
	ns := NamespaceOf(i.ref)
	if ns == (Ref{}) {
		return ""
	}
	live, of := p.Live[ns], p.byRef[ns]
	switch {
	case live != nil && live.GetDeletionTimestamp() != nil:
		return "its namespace is being deleted: restore again when that is gone"
	case live == nil && p.Unread[ns] == "" && (of == nil || p.Only != nil && !p.Only(ns)):
		return "its namespace is not there, and not restored with it: create it, and restore again"
	}
	return ""
}

// prepare sets what is written.
func (p *planning) prepare(i *item) {
	s := i.step
	s.Object = Manifest(i.ref.Kind, i.record.Object)
	_ = unstructured.SetNestedField(s.Object.Object, p.mark(i), "metadata", "annotations", v1beta1.RestoredAnnotation)
	s.Managers = managersOf(i.record.Object)
	if s.Outcome == Replace {
		takeOver(s.Object, s.Live)
	}
	if d := p.byRef[i.kind.definition]; d != nil {
		s.Definition = d.ref
		i.needs = append(i.needs, d)
	}
	if ns := p.byRef[NamespaceOf(i.ref)]; ns != nil {
		i.needs = append(i.needs, ns)
	}
	if status, ok := statusOf(i); ok && p.Status {
		if i.kind.Status {
			s.Status = status
		} else {
			s.Object.Object["status"] = status
		}
	}
	p.prepareKind(i)
}

// ownerOf returns the owner that a reference names, or why it names none.
func (p *planning) ownerOf(i *item, o metav1.OwnerReference) (Ref, string) {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	kind, ok := p.kinds[p.byKind[schema.GroupKind{Group: gv.Group, Kind: o.Kind}]]
	if err != nil || !ok {
		return Ref{}, "its kind is not served"
	}
	ref := Ref{Kind: kind.GroupResource, Name: o.Name}
	if kind.Namespaced {
		if ref.Namespace = i.ref.Namespace; ref.Namespace == "" {
			return Ref{}, "it is in a namespace, and the object is not"
		}
	}
	return ref, ""
}

// owner returns the uid that a reference gets: that of a living owner, or the one that a step
// makes. Otherwise it returns why the reference is dropped.
func (p *planning) owner(i *item, o metav1.OwnerReference) (ref Ref, uid types.UID, makes bool, dropped string) {
	ref, dropped = p.ownerOf(i, o)
	if dropped != "" {
		return ref, "", false, dropped
	}
	of := p.byRef[ref]
	if of != nil && of.record.Object.GetUID() != o.UID {
		return ref, "", false, "it was gone before, and another has its name"
	}
	if of != nil && of.step != nil && of.step.Outcome == Create {
		return ref, "", true, ""
	}
	live := p.Live[ref]
	switch {
	case live != nil && live.GetDeletionTimestamp() != nil:
		return ref, "", false, "it is being deleted"
	case live != nil:
		return ref, live.GetUID(), false, ""
	case p.Unread[ref] != "":
		return ref, "", false, "whether it is there could not be read: " + p.Unread[ref]
	case of != nil && of.step == nil:
		return ref, "", false, "it is not restored with it"
	case of != nil && !of.step.Outcome.Acts():
		return ref, "", false, "it is not made again"
	}
	return ref, "", false, "it is gone"
}

// resolve gives references their uids.
func (p *planning) resolve(i *item) {
	s := i.step
	if s == nil || !s.Outcome.Acts() && (s.Outcome != There || !i.made) {
		return
	}
	has := map[Ref]bool{}
	var references []metav1.OwnerReference
	for _, o := range i.record.Object.GetOwnerReferences() {
		ref, uid, makes, dropped := p.owner(i, o)
		if dropped != "" {
			if s.Outcome.Acts() {
				s.Dropped = append(s.Dropped, fmt.Sprintf("without its reference to %s %s: %s", o.Kind, o.Name, dropped))
			}
			continue
		}
		if has[ref] {
			continue
		}
		has[ref] = true
		if !makes && refers(s.Live, uid) {
			continue
		}
		gv, _ := schema.ParseGroupVersion(o.APIVersion)
		if kind := p.kinds[ref.Kind]; !slices.Contains(kind.Versions, gv.Version) {
			o.APIVersion = schema.GroupVersion{Group: gv.Group, Version: kind.Versions[0]}.String()
		}
		if o.UID = uid; makes {
			s.Links = append(s.Links, Link{Owner: ref, Reference: o})
			i.owners = append(i.owners, p.byRef[ref])
			continue
		}
		references = append(references, o)
	}
	if s.Outcome.Acts() {
		s.Object.SetOwnerReferences(append(s.Object.GetOwnerReferences(), references...))
		return
	}
	p.complete(i, references)
}

// complete sets what an object that this restore made still lacks.
func (p *planning) complete(i *item, references []metav1.OwnerReference) {
	s := i.step
	s.References = references
	if status, ok := statusOf(i); ok && p.Status && i.kind.Status && s.Live.Object["status"] == nil {
		s.Status = status
	}
	if managersOf(s.Live) == nil {
		s.Managers = managersOf(i.record.Object)
	}
	if len(s.References)+len(s.Links)+len(s.Managers) > 0 || s.Status != nil {
		s.Outcome, s.Why, s.Object = Patch, "it was restored, but not all of it", nil
	}
}

func refers(o *unstructured.Unstructured, uid types.UID) bool {
	is := func(r metav1.OwnerReference) bool { return r.UID == uid }
	return o != nil && slices.ContainsFunc(o.GetOwnerReferences(), is)
}
