package graph_test

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// model is the graph once more, as simple as it can be: lists, loops, and nothing that is kept up
// to date. What it says about an object it works out from the lists each time it is asked.
type model struct {
	kinds           []mKind
	objects         []mObject // oldest first
	claims          []mClaim  // what is known of the claims that objects make
	types           []mType   // of these claims
	resources       []graph.Resource
	discovered      bool
	draining        map[string]bool
	recentlyDeleted []types.UID                        // gone, as a watch showed
	remembered      map[types.UID]schema.GroupResource // by a process before
	orphaned        []types.UID                        // gone, and what referred to them was to live
	history         uint32                             // how often the server's went back
	relisting       bool                               // since it did
	holder          string                             // holds foreground deletions until they are ruled
}

type mKind struct {
	graph.Resource
	served bool
	state  graph.ListState
	level  bool // everything has come that its last list and the watch since had to bring
	lists  uint32

	undefined bool // its definition went, or is going
}

type mObject struct {
	graph.Object
	accepted bool
	overdue  bool // accepted before the last round that gives up
	released bool // was orphaning, and is not any more
	ruled    *graph.Ruled
	holder   string          // the model's
	guarded  bool            // a policy refused its delete, at the version that it has
	shown    bool            // since its kind's last list began
	why      graph.Inference // it is being collected for
	// references that an edit put there, or left there as the last, after the owner was deleted
	written []words
	edited  []words // or while the owner was not known to be there
	// kinds whose objects referred to it when their watches ended, and were not listed since
	hidden []schema.GroupResource
}

// propagation is how an object that is being deleted ends: by its own word, or as was ruled; "" if
// neither says anything.
func (o *mObject) propagation() metav1.DeletionPropagation {
	switch {
	case !o.Deleting:
		return ""
	case slices.Contains(o.Finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(o.Finalizers, metav1.FinalizerDeleteDependents):
		if o.holder != "" && o.ruled == nil && slices.Contains(o.Finalizers, o.holder) {
			return ""
		}
		return metav1.DeletePropagationForeground
	case o.ruled != nil:
		return o.ruled.Propagation
	}
	return ""
}

func (o *mObject) orphaning() bool  { return o.propagation() == metav1.DeletePropagationOrphan }
func (o *mObject) foreground() bool { return o.propagation() == metav1.DeletePropagationForeground }

// become makes an object what f does, and remembers what it was.
func (o *mObject) become(f func()) {
	wasOrphaning := o.orphaning()
	f()
	if o.ruled != nil && (!o.Deleting || o.ruled.Propagation == "" || !slices.Contains(o.Finalizers, o.ruled.Finalizer)) {
		o.ruled = nil
	}
	o.released = !o.foreground() && (o.released || wasOrphaning && !o.orphaning())
}

// words are what a reference says, with the namespace of the object that has it.
type words struct {
	apiVersion, kind, namespace, name string
	uid                               types.UID
}

func wordsOf(r metav1.OwnerReference, namespace string) words {
	return words{r.APIVersion, r.Kind, namespace, r.Name, r.UID}
}

type mClaim struct {
	words
	look     string // "", now, failed, denied, present or absent
	tries    int
	finds    int
	rounds   int
	orphaned bool
	inferred graph.Inference // absent: from what that follows
}

func inferred(c graph.Conclusion, owners schema.GroupResource) graph.Inference {
	if c == graph.Asked {
		return graph.Inference{}
	}
	return graph.Inference{Conclusion: c, Owners: owners}
}

// mType is what an apiVersion and kind stand for; known stays when the whole kind is no longer
// served.
type mType struct {
	apiVersion, kind         string
	resource                 schema.GroupResource
	known, served, ambiguous bool
	namespaced               bool
}

func (m *model) kind(gr schema.GroupResource) *mKind {
	for i := range m.kinds {
		if m.kinds[i].GroupResource() == gr {
			return &m.kinds[i]
		}
	}
	m.kinds = append(m.kinds, mKind{Resource: graph.Resource{Group: gr.Group, Resource: gr.Resource}})
	return &m.kinds[len(m.kinds)-1]
}

func (m *model) object(gr schema.GroupResource, uid types.UID) *mObject {
	for i := range m.objects {
		if o := &m.objects[i]; o.Kind == gr && o.UID == uid {
			return o
		}
	}
	return nil
}

// nodes tells under how many kinds a uid is shown.
func (m *model) nodes(uid types.UID) (n int) {
	for _, o := range m.objects {
		if o.UID == uid {
			n++
		}
	}
	return n
}

// apply takes in an event, and then makes the lists of claims and types what the objects say.
func (m *model) apply(ev graph.Event) {
	switch ev := ev.(type) {
	case graph.Serving:
		m.serve(ev.Resources)
	case graph.Observed:
		m.observe(*ev.Object)
	case graph.Gone:
		m.gone(ev.Kind, ev.UID, graph.Asked)
	case graph.Unlisted:
		m.unlist(func(o *mObject) bool { return o.Kind == ev.Kind && o.UID == ev.UID })
	case graph.NotFound:
		if ev.History == m.history {
			m.gone(ev.Kind, ev.UID, graph.OwnerNotFound)
		}
	case graph.ListSlow:
		if k := m.kind(ev.Kind); k.state == graph.Listing {
			k.state = graph.Slow
		}
	case graph.FellBehind:
		m.kind(ev.Kind).level = false
	case graph.Rewound:
		m.objects, m.claims, m.orphaned, m.recentlyDeleted, m.remembered = nil, nil, nil, nil, nil
		m.history, m.relisting = m.history+1, true
		for i := range m.kinds {
			k := &m.kinds[i]
			if k.level = false; k.served && k.Collected {
				k.state = graph.Listing
			} else {
				k.state = graph.Unwatched
			}
		}
	case graph.KindRewound:
		m.kind(ev.Kind)
		m.history, m.recentlyDeleted, m.remembered = m.history+1, nil, nil
		for i := range m.claims {
			if c := &m.claims[i]; c.look == "now" || m.typeOf(c.words).resource == ev.Kind {
				c.look = ""
			}
		}
	case graph.ListBegins:
		m.kind(ev.Kind)
		for i := range m.objects {
			m.objects[i].shown = m.objects[i].shown && m.objects[i].Kind != ev.Kind
		}
	case graph.ListEnds:
		m.listEnds(ev.Kind)
	case graph.ListFailed:
		if k := m.kind(ev.Kind); k.state != graph.Synced && k.state != graph.Unwatched {
			k.state = graph.Failing
			if ev.Forbidden {
				k.state = graph.Forbidden
			}
		}
	case graph.Stopped:
		m.hide(ev.Kind)
		m.lose(func(o *mObject) bool { return o.Kind == ev.Kind })
		k := m.kind(ev.Kind)
		k.state, k.level = graph.Unwatched, false
		if k.served && k.Collected {
			k.state = graph.Listing
		}
	case graph.LookupStarted:
		m.alike(ev.Claim, func(c *mClaim) {
			if c.look == "" && ev.Claim.History == m.history {
				c.look = "now"
			}
		})
	case graph.LookupAnswered:
		if ev.Claim.History == m.history {
			m.alike(ev.Claim, func(c *mClaim) { m.answer(c, ev) })
		}
	case graph.Accepted:
		if o := m.object(ev.Action.Object.Kind, ev.Action.Object.UID); o != nil {
			if !o.accepted && o.ResourceVersion == ev.Action.Object.ResourceVersion {
				o.accepted, o.overdue = true, false
			}
		}
	case graph.Ruled:
		if o := m.object(ev.Kind, ev.UID); o != nil && o.Deleting && slices.Contains(o.Finalizers, ev.Finalizer) {
			o.become(func() { o.ruled = &ev })
		}
	case graph.Holds:
		m.holder = ev.Finalizer
		for i := range m.objects {
			m.objects[i].become(func() { m.objects[i].holder = ev.Finalizer })
		}
	case graph.Protected:
		if o := m.object(ev.Object.Kind, ev.Object.UID); o != nil && o.ResourceVersion == ev.Object.ResourceVersion {
			o.guarded = true
		}
	case graph.Collecting:
		if o := m.object(ev.Kind, ev.UID); o != nil {
			o.why = graph.Inference{Conclusion: ev.Inference.Conclusion, Owners: ev.Inference.Owners, Inherited: true}
		}
	case graph.Remembered:
		m.remember(ev)
	case graph.Recheck:
		m.recheck(ev.Round)
	case graph.Draining:
		if m.draining == nil {
			m.draining = map[string]bool{}
		}
		m.draining[ev.Namespace] = ev.On
	}
	m.tidy()
	m.relisting = m.relisting && slices.ContainsFunc(m.kinds, func(k mKind) bool {
		return k.served && k.Collected && (k.state == graph.Listing || k.state == graph.Slow)
	})
}

func (m *model) gone(gr schema.GroupResource, uid types.UID, concluded graph.Conclusion) {
	m.recentlyDeleted = append(m.recentlyDeleted, uid)
	if o := m.object(gr, uid); o != nil {
		if gr.Resource == "customresourcedefinitions" {
			m.define(o.Name, true)
		}
		if k := m.kind(gr); !k.served || k.undefined {
			concluded = graph.DefinitionGone
		}
		m.settle(o, m.leavesOrphans(o), concluded)
		m.remove(func(other *mObject) bool { return other.Kind == gr && other.UID == uid })
	}
}

func (m *model) serve(resources []graph.Resource) {
	m.resources, m.discovered = resources, true
	for i := range m.kinds {
		m.kinds[i].served = false
	}
	for _, r := range resources {
		k := m.kind(r.GroupResource())
		k.Resource, k.served = r, true
		if r.Collected && k.state == graph.Unwatched {
			k.state = graph.Listing
		}
	}
	for i, before := range m.types {
		after := m.resolve(before.apiVersion, before.kind)
		if !after.known && before.known && !m.kind(before.resource).served {
			after.known, after.resource = true, before.resource
			after.namespaced = m.kind(before.resource).Namespaced
		}
		m.types[i] = after
		for j := range m.claims {
			c := &m.claims[j]
			if before != after && c.apiVersion == after.apiVersion && c.kind == after.kind &&
				(c.look != "absent" || !after.known) {
				c.look = ""
			}
		}
	}
}

func (m *model) resolve(apiVersion, kind string) mType {
	t := mType{apiVersion: apiVersion, kind: kind}
	for _, r := range m.resources {
		for _, v := range r.Versions {
			if r.Kind != kind || (schema.GroupVersion{Group: r.Group, Version: v}).String() != apiVersion {
				continue
			}
			t.ambiguous = t.ambiguous || t.known && t.resource != r.GroupResource()
			t.known, t.served, t.resource = true, true, r.GroupResource()
		}
	}
	t.namespaced = t.known && m.kind(t.resource).Namespaced
	return t
}

func (m *model) observe(seen graph.Object) {
	if m.kind(seen.Kind).state == graph.Unwatched {
		return
	}
	o := m.object(seen.Kind, seen.UID)
	if before := o; seen.Kind.Resource == "customresourcedefinitions" &&
		(before == nil || before.Deleting != seen.Deleting) {
		m.define(seen.Name, seen.Deleting)
	}
	edited := o != nil
	if !edited {
		m.objects = append(m.objects, mObject{Object: graph.Object{Kind: seen.Kind, UID: seen.UID}, holder: m.holder})
		o = m.object(seen.Kind, seen.UID)
	}
	o.accepted = o.accepted && o.ResourceVersion == seen.ResourceVersion
	o.guarded = o.guarded && o.ResourceVersion == seen.ResourceVersion
	before, place := o.Owners, o.Namespace
	o.become(func() { o.Object, o.shown = seen, true })
	o.Owners = before
	if place == seen.Namespace && slices.EqualFunc(before, seen.Owners, sameReference) {
		return
	}
	m.edit(o, seen.Owners, place, edited)
	o.Owners = seen.Owners
}

// edit is what an edit does to the references of an object, which is where it was before.
func (m *model) edit(o *mObject, seen []metav1.OwnerReference, place string, edited bool) {
	severs := false
	for _, r := range o.Owners {
		owner := m.meant(wordsOf(r, place))
		keeps := !slices.Contains([]string{"A", "W", "O"}, m.class(r, place)) && (owner == nil || !owner.Deleting)
		severs = severs || keeps && !slices.ContainsFunc(seen, func(other metav1.OwnerReference) bool {
			return other.UID == r.UID
		})
	}
	var written, left []words
	for _, r := range seen {
		w := wordsOf(r, o.Namespace)
		old := slices.ContainsFunc(o.Owners, func(r metav1.OwnerReference) bool { return wordsOf(r, place) == w })
		ends := m.ends(r, o.Namespace)
		by := edited && (!old || severs) && (ends || m.class(r, o.Namespace) != "P")
		if old && slices.Contains(o.written, w) || by && ends {
			written = append(written, w)
		}
		if old && slices.Contains(o.edited, w) || by {
			left = append(left, w)
		}
	}
	o.written, o.edited = written, left
}

func sameReference(a, b metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(a, b) }

// ends tells whether an owner is gone, or being deleted.
func (m *model) ends(r metav1.OwnerReference, namespace string) bool {
	owner := m.meant(wordsOf(r, namespace))
	return slices.Contains([]string{"A", "W"}, m.class(r, namespace)) || owner != nil && owner.Deleting
}

// define takes over whether a kind's definition stays. What went without a reason before goes for
// that.
func (m *model) define(name string, goes bool) {
	for i := range m.kinds {
		if m.kinds[i].GroupResource().String() != name {
			continue
		}
		m.kinds[i].undefined = goes
		if goes {
			m.back(name)
		}
		for j := range m.claims {
			if c := &m.claims[j]; goes && c.look == "absent" && c.inferred == (graph.Inference{}) &&
				m.typeOf(c.words).resource.String() == name {
				c.inferred = inferred(graph.DefinitionGone, m.typeOf(c.words).resource)
			}
		}
	}
}

func (m *model) leavesOrphans(o *mObject) bool {
	return o.orphaning() || o.released || slices.Contains(m.orphaned, o.UID)
}

// settle answers the claims that mean an object, for good.
func (m *model) settle(o *mObject, orphans bool, concluded graph.Conclusion) {
	if orphans {
		m.orphaned = append(m.orphaned, o.UID)
	}
	for i := range m.claims {
		if c := &m.claims[i]; m.meant(c.words) == o {
			c.look, c.orphaned, c.tries, c.inferred = "absent", orphans, 0, cmp.Or(o.why, inferred(concluded, o.Kind))
		}
	}
}

func (m *model) remove(which func(*mObject) bool) {
	m.objects = slices.DeleteFunc(m.objects, func(o mObject) bool { return which(&o) })
}

// lose removes objects that are not shown any more, which proves nothing about all but those that
// were leaving orphans.
func (m *model) lose(which func(*mObject) bool) {
	for i := range m.objects {
		if o := &m.objects[i]; which(o) && m.leavesOrphans(o) {
			m.settle(o, true, graph.Asked)
		}
	}
	m.remove(which)
}

// unlist is lose for what a list does not show: of a definition it shows that the kind is gone.
func (m *model) unlist(which func(*mObject) bool) {
	for _, o := range m.objects {
		if which(&o) && o.Kind.Resource == "customresourcedefinitions" {
			m.back(o.Name)
		}
	}
	m.lose(which)
}

// hide notes who is referred to by objects of a kind whose watch ends.
func (m *model) hide(gr schema.GroupResource) {
	for _, o := range m.objects {
		for _, r := range o.Owners {
			if owner := m.meant(wordsOf(r, o.Namespace)); o.Kind == gr && owner != nil && !m.kind(gr).undefined {
				owner.hidden = append(owner.hidden, gr)
			}
		}
	}
}

// back ends that: what there is of the kind is known.
func (m *model) back(name string) {
	for i := range m.objects {
		o := &m.objects[i]
		o.hidden = slices.DeleteFunc(o.hidden, func(gr schema.GroupResource) bool { return gr.String() == name })
	}
}

func (m *model) listEnds(gr schema.GroupResource) {
	k := m.kind(gr)
	if k.state == graph.Unwatched {
		return
	}
	k.state, k.level = graph.Synced, true
	k.lists++
	m.back(gr.String())
	m.unlist(func(o *mObject) bool { return o.Kind == gr && !o.shown })
	for i := range m.claims {
		c := &m.claims[i]
		if t := m.typeOf(c.words); c.look == "present" && t.known && t.resource == gr {
			c.look = ""
		}
	}
}

// alike are the claims that a lookup answers.
func (m *model) alike(v graph.Claim, f func(*mClaim)) {
	for i := range m.claims {
		c := &m.claims[i]
		t := m.typeOf(c.words)
		if c.uid == v.UID && c.name == v.Name && t.served && !t.ambiguous && t.resource == v.Resource &&
			(!v.Namespaced || c.namespace == v.Namespace) {
			f(c)
		}
	}
}

func (m *model) answer(c *mClaim, ev graph.LookupAnswered) {
	switch {
	case c.look == "absent":
	case m.meant(c.words) != nil:
		c.look = ""
	case ev.Answer == graph.Absent:
		c.look, c.tries = "absent", 0
		kind := m.typeOf(c.words).resource
		if _, byEdit := m.referencesTo(kind, c.uid); byEdit || m.remembered[c.uid] != kind {
			c.inferred = inferred(graph.OwnerNotFound, kind)
		} else {
			c.inferred = graph.Inference{}
		}
		c.orphaned = slices.Contains(m.orphaned, c.uid)
	case ev.Answer == graph.Unanswered || ev.Answer == graph.Denied:
		c.look, c.rounds = map[graph.Answer]string{graph.Unanswered: "failed", graph.Denied: "denied"}[ev.Answer], 0
		c.tries++
	case ev.Claim.Lists != m.kind(m.typeOf(c.words).resource).lists:
		c.look = ""
	default:
		c.look, c.rounds, c.tries = "present", 0, 0
		c.finds++
	}
}

// referencesTo counts them, and tells whether an edit has written one.
func (m *model) referencesTo(kind schema.GroupResource, uid types.UID) (n int, byEdit bool) {
	for i := range m.objects {
		o := &m.objects[i]
		for _, r := range o.Owners {
			w := wordsOf(r, o.Namespace)
			if t := m.typeOf(w); r.UID == uid && t.known && t.resource == kind {
				n++
				byEdit = byEdit || slices.Contains(o.edited, w)
			}
		}
	}
	return n, byEdit
}

func (m *model) remember(ev graph.Remembered) {
	n, byEdit := m.referencesTo(ev.Kind, ev.UID)
	if m.object(ev.Kind, ev.UID) != nil || n == 0 || n > ev.References || byEdit {
		return
	}
	if m.remembered == nil {
		m.remembered = map[types.UID]schema.GroupResource{}
	}
	m.remembered[ev.UID] = ev.Kind
	for i := range m.claims {
		c := &m.claims[i]
		if c.uid == ev.UID && c.look == "absent" && c.inferred == inferred(graph.OwnerNotFound, ev.Kind) {
			c.inferred = graph.Inference{}
		}
	}
}

func (m *model) recheck(round uint64) {
	for i := range m.claims {
		c := &m.claims[i]
		if c.look != "failed" && c.look != "denied" && c.look != "present" {
			continue
		}
		c.rounds++
		wait := min(1024, 32<<min(c.finds, 20))
		if c.look != "present" {
			wait = min(64, 1<<min(c.tries, 20)/2)
		}
		if c.rounds >= wait {
			c.look = ""
		}
	}
	for i := range m.objects {
		if o := &m.objects[i]; o.accepted && round%64 == 0 {
			o.accepted, o.overdue = !o.overdue, !o.overdue
		}
	}
}

func (m *model) tidy() {
	var types []mType
	var claims []mClaim
	for _, o := range m.objects {
		for _, r := range o.Owners {
			w := wordsOf(r, o.Namespace)
			if !slices.ContainsFunc(types, func(t mType) bool { return t.apiVersion == w.apiVersion && t.kind == w.kind }) {
				types = append(types, m.typeOf(w))
			}
			if slices.ContainsFunc(claims, func(c mClaim) bool { return c.words == w }) {
				continue
			}
			claims = append(claims, m.claimOf(w))
		}
	}
	m.types, m.claims = types, claims
	for i := range m.claims {
		c := &m.claims[i]
		if m.meant(c.words) != nil && c.look != "now" {
			c.look, c.orphaned = "", false // what is seen needs no answer
		}
		if m.meant(c.words) != nil {
			c.finds = 0
		}
	}
	for i := range m.objects {
		o := &m.objects[i]
		there := func(w words) bool {
			r := metav1.OwnerReference{APIVersion: w.apiVersion, Kind: w.kind, Name: w.name, UID: w.uid}
			return !slices.Contains(o.written, w) && m.class(r, w.namespace) == "P"
		}
		o.edited = slices.DeleteFunc(o.edited, there)
	}
}

func (m *model) typeOf(w words) mType {
	for _, t := range m.types {
		if t.apiVersion == w.apiVersion && t.kind == w.kind {
			return t
		}
	}
	return m.resolve(w.apiVersion, w.kind)
}

func (m *model) claimOf(w words) mClaim {
	for _, c := range m.claims {
		if c.words == w {
			return c
		}
	}
	c := mClaim{words: w}
	if slices.Contains(m.orphaned, w.uid) {
		c.look, c.orphaned = "absent", true
	}
	return c
}

// meant is the object that a claim means: exactly as it says, or none.
func (m *model) meant(w words) *mObject {
	t := m.typeOf(w)
	if !t.known || t.ambiguous {
		return nil
	}
	for i := range m.objects {
		o := &m.objects[i]
		here := o.Namespace == w.namespace || !m.kind(o.Kind).Namespaced
		if o.UID == w.uid && o.Kind == t.resource && o.Name == w.name && here {
			return o
		}
	}
	return nil
}
