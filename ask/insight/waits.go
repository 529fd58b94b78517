package insight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Cause is one reason why an object is as it is.
type Cause struct {
	What string `json:"what"`
	// Actor has to act before anything changes; empty if nobody has to.
	Actor string `json:"actor,omitempty"`
	// Evidence is what was found that speaks for it; it proves nothing beyond that.
	Evidence []string `json:"evidence,omitempty"`
	// Look is a command that shows more.
	Look    string   `json:"look,omitempty"`
	Objects []Object `json:"objects,omitempty"`

	finalizer string  // the finalizer that it is about
	holder    Object  // the object with that finalizer
	manager   string  // the field manager that wrote it
	about     subject // what else it is about
	refused   refusal // who refuses the request of a controller
	shared    bool    // one of many for the same thing that the object waits for
	endless   bool    // the object is in a cycle of objects that wait for each other
}

// subject is what a cause is about, besides finalizers.
type subject uint8

const (
	aboutOther    subject = iota
	aboutContent          // the content of a namespace or a definition
	aboutStopping         // a pod that stops
)

// explanation finds out why terminating objects still exist. An object may wait for itself, as a
// definition for its instance that owns the definition, so each object is explained once.
type explanation struct {
	*World
	now  time.Time
	told map[types.UID][]Cause
	open map[types.UID]bool // objects that are being explained
}

func (w *World) explain(now time.Time) *explanation {
	return &explanation{World: w, now: now, told: map[types.UID][]Cause{}, open: map[types.UID]bool{}}
}

// of returns why an object still exists. For an object that is being explained already, it returns
// an endless cause.
func (w *explanation) of(v *graph.View) []Cause {
	if w.open[v.UID] {
		return []Cause{{Actor: whoBreaksACycle, endless: true}}
	}
	told, ok := w.told[v.UID]
	if !ok {
		w.open[v.UID] = true
		told = w.waits(v)
		delete(w.open, v.UID)
		w.told[v.UID] = told
	}
	return told
}

const (
	whoBreaksACycle = "a person, because objects wait for each other"
	howToBreakIt    = "this never ends by itself: remove the owner reference by which one of them waits for another, " +
		"or the owner's finalizer foregroundDeletion"
)

// waits returns why a terminating object still exists, as far as metadata and the graph tell.
func (w *explanation) waits(v *graph.View) (out []Cause) {
	for _, f := range v.Finalizers {
		switch {
		case f == metav1.FinalizerDeleteDependents:
			out = append(out, w.blocked(v)...)
		case f == metav1.FinalizerOrphanDependents:
			out = append(out, w.orphaning(v)...)
		case f == cleanup && v.Kind == definitions:
			out = append(out, w.instancesLeft(v)...)
		default:
			c := w.finalizer(v, f)
			if by, ok := w.refused[v.UID]; ok && f == v1beta1.Finalizer {
				c.Actor, c.Look, c.refused = by.actor, cmp.Or(by.look, c.Look), by
				c.Evidence = append(c.Evidence, by.evidence)
			}
			out = append(out, c)
		}
	}
	if v.Kind == namespaces {
		out = append(out, w.draining(v)...)
	}
	if c, ok := w.stopping(v, w.now); ok {
		out = append(out, c)
	}
	if len(out) == 0 {
		return []Cause{{What: "nothing that can be seen: it should be gone soon", Actor: "the API server"}}
	}
	return out
}

// stopping returns the cause that a pod has time to stop, if it has.
func (w *World) stopping(v *graph.View, now time.Time) (Cause, bool) {
	m := w.Meta(v.UID)
	if v.Kind != pods || m == nil || m.DeletionTimestamp == nil || m.DeletionGracePeriodSeconds == nil ||
		*m.DeletionGracePeriodSeconds == 0 {
		return Cause{}, false
	}
	c := Cause{What: "its grace period is over, and its node has not confirmed that it has stopped",
		Actor: "the kubelet of its node", about: aboutStopping,
		Look: fmt.Sprintf("kubectl get pod -n %s %s -o wide", v.Namespace, v.Name)}
	if left := m.DeletionTimestamp.Sub(now); left > 0 {
		c.What, c.Look = fmt.Sprintf("its grace period lasts for another %s", duration.HumanDuration(left)), ""
	}
	return c, true
}

// mostLeaves bounds the blockers of an owner that are examined to tell who has to act.
const mostLeaves = 1000

// blocked returns the causes of an object that is deleted foreground: one for each actor on what it
// waits for.
func (w *explanation) blocked(v *graph.View) []Cause {
	leaves := w.blockers(v.UID)
	look := treeCommand(v)
	if len(leaves) == 0 {
		c := w.acting(v.UID, "the garbage collector")
		c.What, c.Look = "foreground deletion, and nothing blocks it any more: the garbage collector has to "+
			"remove its finalizer", cmp.Or(c.Look, look)
		if ring := w.blocksInRing(v.UID); len(ring) > 0 {
			c.What = "foreground deletion: it waits in a cycle for " + counted(ring)
			c.Objects, c.Evidence = ring[:min(len(ring), someNames)],
				[]string{"Weir's collector breaks such a cycle; " +
					"the built-in one does not, once all objects in it are being deleted"}
		} else if kinds := w.incomplete(v); kinds != "" {
			c.What = "foreground deletion: whether dependents are left is not known, because these could not be read: " + kinds
		}
		return []Cause{c}
	}
	var out []Cause
	some := leaves[:min(len(leaves), mostLeaves)]
	for _, s := range w.shares(some, w.byDeleter(Cause{Actor: "the garbage collector"})) {
		s.cause.What, s.cause.Look = "foreground deletion: it waits for "+counted(s.objects),
			cmp.Or(s.cause.Look, look)
		if len(leaves) > mostLeaves {
			s.cause.What += fmt.Sprintf(" (of the first %d of %d that block it)", mostLeaves, len(leaves))
		}
		s.cause.Evidence = append(s.cause.Evidence, s.holds(v.Namespace)...)
		if first := &s.first; !first.Deleting {
			s.cause.Evidence = append(s.cause.Evidence, fmt.Sprintf("%s is not being deleted: %s",
				objectOf(first).Short(v.Namespace), w.Graph.Decide(first.UID).Why))
		}
		out = append(out, s.cause)
	}
	return out
}

// blockers returns the ends of the chains of dependents that block an owner: those that wait for no
// dependent themselves, sorted.
func (w *World) blockers(uid types.UID) (out []graph.View) {
	met := map[types.UID]bool{uid: true}
	todo := []types.UID{uid}
	for len(todo) > 0 {
		owner := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, d := range w.Graph.Dependents(owner) {
			if met[d.UID] || !blocks(&d, owner) {
				continue
			}
			met[d.UID] = true
			if d.Foreground && d.Blocking > 0 {
				todo = append(todo, d.UID)
			} else {
				out = append(out, d)
			}
		}
	}
	slices.SortFunc(out, viewsByName)
	return out
}

// blocks reports whether an owner waits for a dependent, as far as references tell.
func blocks(d *graph.View, owner types.UID) bool {
	return slices.ContainsFunc(d.Owners, func(o graph.OwnerView) bool {
		return o.UID == owner && o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion && owns(o.Verdict)
	})
}

// blocksInRing returns the dependents that block an owner while they wait for it, sorted. It is for
// owners that nothing else blocks.
func (w *World) blocksInRing(uid types.UID) (out []Object) {
	for _, d := range w.Graph.Dependents(uid) {
		if blocks(&d, uid) {
			out = append(out, objectOf(&d))
		}
	}
	slices.SortFunc(out, func(a, b Object) int { return byName(&a, &b) })
	return out
}

// orphaning returns the causes of an object whose dependents are being orphaned: one for each actor
// on the references that are left.
func (w *explanation) orphaning(v *graph.View) (out []Cause) {
	dependents := w.Graph.Dependents(v.UID)
	if len(dependents) == 0 {
		c := w.acting(v.UID, "the garbage collector")
		c.Look = cmp.Or(c.Look, treeCommand(v))
		if kinds := w.incomplete(v); kinds != "" {
			c.What = "its dependents are being orphaned: whether some are left is not known, because these " +
				"could not be read: " + kinds
		} else {
			c.What = "its dependents are orphaned, and none is left: the garbage collector has to remove its finalizer"
		}
		return []Cause{c}
	}
	for _, s := range w.shares(dependents, func(d *graph.View) []Cause {
		return []Cause{w.acting(d.UID, "the garbage collector")}
	}) {
		refer := "refer"
		if len(s.objects) == 1 {
			refer = "refers"
		}
		s.cause.What = fmt.Sprintf("its dependents are being orphaned: %s still %s to it", counted(s.objects), refer)
		s.cause.Look = cmp.Or(s.cause.Look, treeCommand(v))
		out = append(out, s.cause)
	}
	return out
}

// finalizer returns the cause that a finalizer is, which neither the collector nor Weir removes.
func (w *World) finalizer(v *graph.View, name string) Cause {
	c := Cause{What: "the finalizer " + name + " holds it", Actor: actorOf(name), finalizer: name, holder: objectOf(v)}
	if f, ok := KnownFinalizer(name); ok {
		c.What += ": " + f.Component + " removes it when " + f.WaitsFor
		look := f.Look
		if v.Namespace == "" {
			look = strings.Replace(look, " -n NAMESPACE", "", 1)
		}
		c.Look = strings.NewReplacer("NAMESPACE", v.Namespace,
			"TYPE NAME", words.Object(v.Kind.String(), v.Name), "NAME", words.Shell(v.Name)).Replace(look)
	}
	manager, at := writer(w.Meta(v.UID), name)
	if c.manager = manager; at != "" {
		c.Evidence = append(c.Evidence, fmt.Sprintf("the finalizer was written by the field manager %q, last at %s",
			manager, at))
	}
	return c
}

func actorOf(finalizer string) string {
	if f, ok := KnownFinalizer(finalizer); ok {
		return f.Component
	}
	return "the component behind the finalizer " + finalizer
}

// treeCommand returns a kubectl weir command that shows more about an object.
func treeCommand(v *graph.View) string {
	if v.Namespace == "" {
		return "kubectl weir tree " + words.Object(v.Kind.String(), v.Name)
	}
	return fmt.Sprintf("kubectl weir tree -n %s %s", v.Namespace, words.Object(v.Kind.String(), v.Name))
}
