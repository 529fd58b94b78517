package insight

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

var (
	namespaces  = schema.GroupResource{Resource: "namespaces"}
	definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	pods        = schema.GroupResource{Resource: "pods"}
)

// cleanup is the finalizer by which a definition waits for its instances.
const cleanup = "customresourcecleanup.apiextensions.k8s.io"

// undeletable are the namespaces whose deletes the API server refuses, whoever asks.
var undeletable = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}

const nobodyMay = "the API server refuses to delete this namespace, whoever asks"

func isUndeletable(v *graph.View) bool {
	return v.Kind == namespaces && slices.Contains(undeletable, v.Name)
}

// Propagations maps the values of kubectl's --cascade to propagations.
var Propagations = map[string]metav1.DeletionPropagation{
	"background": metav1.DeletePropagationBackground,
	"foreground": metav1.DeletePropagationForeground,
	"orphan":     metav1.DeletePropagationOrphan,
}

// Deletion is what a user is about to do.
type Deletion struct {
	Roots []types.UID
	// Garbage says that Roots are garbage, which a collector deletes: see World.Garbage.
	Garbage bool
	// Decided says that a person has approved the deletion of Roots, so no brake holds them.
	Decided     bool
	Propagation metav1.DeletionPropagation
	// Enforce returns what policies say about the deletion of an object, as the DELETE leaves it;
	// nil if nothing is known of policies.
	Enforce func(graph.View) Enforcement
	// Protects returns why a policy refuses a collector the delete of an object, which is then
	// released from its owners; why is empty if none does. doubt is why that is not known. nil:
	// nothing is known of policies.
	Protects func(graph.View) (why, doubt string)
	// Verdicts are what policies say about the deletes of Roots.
	Verdicts []Verdict
	// Waves returns, for a namespace, a function that returns in which wave an object is deleted,
	// from 0. nil: pods first, then the rest.
	Waves func(namespace string) func(graph.View) int
}

// Outcome is what becomes of an object.
type Outcome string

// The outcomes.
const (
	Deleted  Outcome = "delete"
	Released Outcome = "release" // stays, and loses references to owners that are deleted
	Unknown  Outcome = "unknown" // stays as far as is known: something about it could not be read, or resolved
	Stuck    Outcome = "stuck"   // its deletion begins, and does not end even when finalizers are removed
)

// Item is what becomes of one object, and why.
type Item struct {
	Object
	Outcome Outcome `json:"outcome"`
	Why     string  `json:"why,omitempty"`
	// Step orders items: one with a higher step is deleted because of, or after, what it depends
	// on. Objects that do not depend on each other are deleted in any order.
	Step int `json:"step"`
	// Stage counts how often others have to remove finalizers before that; 0 means that it happens
	// at once.
	Stage int `json:"stage,omitempty"`
	// Finalizers are those that others must remove before it is gone.
	Finalizers  []string                   `json:"finalizers,omitempty"`
	Propagation metav1.DeletionPropagation `json:"propagation,omitempty"`
	Policy      string                     `json:"policy,omitempty"` // the one that decides its propagation
	Doubt       string                     `json:"doubt,omitempty"`  // why it is not known whether one does
	// Archive is the policy by which it is recorded before it is deleted, with all that is deleted
	// with it.
	Archive string `json:"archive,omitempty"`
	// Brake is why a brake holds it until a person decides; empty if none does.
	Brake string `json:"brake,omitempty"`
	// Contested is why it is not known whether it is deleted, although all was read: it depends on
	// which of two events comes first.
	Contested string `json:"contested,omitempty"`
	Deleting  bool   `json:"deleting,omitempty"` // it is being deleted already
	// Volume is what becomes of the volume of a claim; nil if it is no claim, or its volume is not
	// known.
	Volume *Volume `json:"volume,omitempty"`
	// CreatedAgainBy is its controller, if that stays: it is likely to create the object again.
	CreatedAgainBy *Object `json:"anew,omitempty"`

	stuck      string // why it stays, if the graph does not know
	fresh      int    // the last step in which the decision about it may have changed
	written    int    // the last step in which it was written
	owners     []types.UID
	keepers    []types.UID // deleted owners whose policy keeps it
	controller types.UID   // the owner that is its controller; empty if none is
	via        types.UID   // the namespace or definition that it is deleted with
}

// Verdict is what policies say about the delete of a root.
type Verdict struct {
	Object   Object   `json:"object"`
	Refused  bool     `json:"refused"`
	Message  string   `json:"message,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Confirm is a command that confirms the delete for exactly what is deleted with it now,
	// without flags that select the cluster; empty if no confirmation is asked for.
	Confirm string `json:"confirm,omitempty"`
	// Doubt is why it is not known what policies say; empty if it is.
	Doubt string `json:"doubt,omitempty"`
}

// WithFlags appends flags that select the cluster to the commands of the plan.
func (p *Plan) WithFlags(flags string) {
	for i := range p.Verdicts {
		if v := &p.Verdicts[i]; v.Confirm != "" {
			v.Confirm += flags
		}
	}
}

// Plan is what a deletion would do.
type Plan struct {
	// Held is the HeldCollection whose deletions, if a person approves them, the plan shows; empty
	// if a client requests the deletes.
	Held        string                     `json:"held,omitempty"`
	Roots       []Object                   `json:"roots"`
	Verdicts    []Verdict                  `json:"verdicts,omitempty"`
	Propagation metav1.DeletionPropagation `json:"propagation"`
	Items       []*Item                    `json:"items"`
	Unread      []Unread                   `json:"unread,omitempty"`
}

// Totals counts objects by outcome.
type Totals struct {
	Deleted      int `json:"deleted"`
	Held         int `json:"held"`   // of Deleted: with finalizers that others must remove
	Braked       int `json:"braked"` // of Deleted: held by a brake until a person decides
	Later        int `json:"later"`
	Volumes      int `json:"volumes,omitempty"` // whose data is deleted with claims
	CreatedAgain int `json:"anew"`              // of Deleted: their controllers stay
	Released     int `json:"released"`
	Unknown      int `json:"unknown"`
	Refused      int `json:"refused"` // of the roots
	Stuck        int `json:"stuck"`
	Doubtful     int `json:"doubtful"` // it is not known what policies say about their deletion
	// Contested are those for which it depends on the order of events whether they are deleted.
	Contested int `json:"contested"`
	Steps     int `json:"steps"`
}

// Totals counts the items.
func (p *Plan) Totals() (t Totals) {
	doubtful := map[types.UID]bool{}
	for _, v := range p.Verdicts {
		if v.Refused {
			t.Refused++
		}
		if v.Doubt != "" {
			doubtful[v.Object.UID] = true
		}
	}
	for _, i := range p.Items {
		if i.Doubt != "" {
			doubtful[i.UID] = true
		}
		if i.Contested != "" {
			t.Contested++
		}
		switch i.Outcome {
		case Deleted:
			t.Deleted++
			t.Steps = max(t.Steps, i.Step)
			if i.Volume.losesData() {
				t.Volumes++
			}
			if i.CreatedAgainBy != nil {
				t.CreatedAgain++
			}
			if i.Brake != "" {
				t.Braked++
			} else if len(i.Finalizers) > 0 {
				t.Held++
			} else if i.Stage > 0 {
				t.Later++
			}
		case Released:
			t.Released++
		case Unknown:
			t.Unknown++
		case Stuck:
			t.Stuck++
		}
	}
	t.Doubtful = len(doubtful)
	return t
}

// Plan plays a deletion. The World must not be used afterwards.
func (w *World) Plan(d Deletion) *Plan {
	c := newPlaying(w, d.Enforce)
	c.protects, c.waves = d.Protects, d.Waves
	p := &Plan{Propagation: d.Propagation, Verdicts: slices.Clone(d.Verdicts)}
	c.step = 1
	for _, uid := range d.Roots {
		v, ok := w.Graph.Find(uid)
		if !ok {
			continue
		}
		p.Roots = append(p.Roots, objectOf(&v))
		c.approved[uid] = d.Decided
		i := c.item(uid)
		if d.Garbage {
			c.changed(i)
			continue
		}
		c.meet(i, &v)
		if isUndeletable(&v) {
			i.happens(Stuck, nobodyMay, c)
			continue
		}
		i.Why = "asked for"
		switch v.Kind {
		case namespaces, definitions:
			c.terminate(i, &v, d.Propagation)
		default:
			c.delete(i, &v, d.Propagation)
		}
	}
	c.run()
	p.Items = c.end()
	p.Unread = w.Unread() // after the play: policies may have missed something meanwhile
	if at := slices.IndexFunc(p.Items, c.unsettled); at >= 0 && len(p.Unread) == 0 {
		p.Unread = []Unread{{Kind: "an owner of " + p.Items[at].String(), Reason: "the object is kept for it", Besides: true}}
	}
	return p
}

// end determines what is left when nothing happens any more, and sorts the items by when they
// happen.
func (c *playing) end() []*Item {
	for _, l := range c.later {
		l.open = slices.DeleteFunc(l.open, func(uid types.UID) bool { return !c.world.Graph.Has(uid) })
		if len(l.open) > 0 {
			l.item.stuck = "waits for " + words.Count(len(l.open), "object that is stuck",
				"objects that are stuck")
		}
	}
	for _, i := range c.order {
		if i.Outcome == "" { // nothing happens to it
			continue
		}
		if i.Outcome == Deleted && c.world.Graph.Has(i.UID) {
			i.Outcome, i.Step = Stuck, c.step
			i.Why = cmp.Or(i.stuck, c.world.Graph.Decide(i.UID).Why)
		}
		if i.Outcome != Deleted || i.controller == "" {
			continue
		}
		if maker, ok := c.world.Graph.Find(i.controller); ok && !maker.Deleting {
			o := objectOf(&maker)
			i.CreatedAgainBy = &o
		}
	}
	c.contest()
	items := slices.DeleteFunc(c.order, func(i *Item) bool { return i.Outcome == "" })
	renumber(items)
	// Items of one step stay in the order in which the graph returned them, mostly that of the
	// lists: by name.
	slices.SortStableFunc(items, func(a, b *Item) int { return cmp.Or(a.Stage-b.Stage, a.Step-b.Step) })
	return items
}

// unsettled reports whether an object is kept because it is not known whether an owner exists.
func (c *playing) unsettled(i *Item) bool {
	return i.Outcome == Unknown && c.world.Graph.Decide(i.UID).Unresolvable == graph.Unreadable
}

// renumber counts only steps in which something happens.
func renumber(items []*Item) {
	met := map[int]int{}
	for _, i := range items {
		met[i.Step] = 0
	}
	for n, step := range slices.Sorted(maps.Keys(met)) {
		met[step] = n + 1
	}
	for _, i := range items {
		i.Step = met[i.Step]
	}
}
