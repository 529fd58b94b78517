package sim

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/script"
)

// ours is the finalizer that holds objects until policies were asked how their deletion goes on.
const ours = "weir.example/held"

// propagation is what policies say of an object now; "" while they cannot be judged. They change
// their minds (revision), but not when all is to settle.
func (w *cluster) propagation(uid types.UID) metav1.DeletionPropagation {
	n, _ := strconv.ParseUint(strings.TrimLeft(string(uid[max(0, len(uid)-4):]), "u"), 16, 64)
	c := propagations[(n*7+w.revision)%4]
	if c == "" && !w.chaos {
		c = metav1.DeletePropagationForeground
	}
	return c
}

// revise is a change of policies: all that is held is asked about again.
func (w *cluster) revise() {
	w.revision++
	for _, c := range w.working() {
		c.askAll()
	}
}

// askAll is for a new leader, and for new policies.
func (c *collector) askAll() {
	for _, uid := range script.UIDs(c.graph) {
		if v, ok := c.graph.Find(uid); ok {
			c.ask(&object{Object: graph.Object{UID: uid, Kind: v.Kind, Finalizers: v.Finalizers, Deleting: v.Deleting}})
		}
	}
}

// ask puts an object down for a ruling, if it is held for one.
func (c *collector) ask(o *object) {
	if c.leads && o.Deleting && o.has(ours) {
		c.unruled[o.UID] = o.Kind
	}
}

// ruling is what the collector was told of an object.
func (c *collector) ruling(uid types.UID) metav1.DeletionPropagation {
	v, _ := c.graph.Find(uid)
	return v.Ruled
}

// rule asks policies about one object, and tells the graph.
func (w *cluster) rule() error {
	c := pick(w, w.working())
	uids := sortedKeys(c.unruled)
	if len(uids) == 0 {
		return nil
	}
	uid := pick(w, uids)
	kind := c.unruled[uid]
	delete(c.unruled, uid)
	w.stats["rulings"]++
	propagation := w.propagation(uid)
	if err := c.apply(graph.Ruled{Kind: kind, UID: uid, Finalizer: ours, Propagation: propagation}, uid, ""); err != nil {
		return err
	}
	v, ok := c.graph.Find(uid)
	if !ok || v.Ruled == "" {
		return nil
	}
	if v.Orphaning {
		c.orphaning[uid] = true
	}
	if v.Foreground {
		delete(c.orphaning, uid)
	}
	// Whoever was told once may act on it, as soon as the object has no word of its own.
	for _, o := range []*object{w.server.kind(kind).objects[uid], w.server.buried[uid]} {
		if o != nil {
			o.ruled = true
			o.wasForeground = o.wasForeground || o.askedForeground || propagation == metav1.DeletePropagationForeground
			o.wasOrphaning = o.wasOrphaning || propagation == metav1.DeletePropagationOrphan
		}
	}
	return nil
}

// orphans and waits tell how an object on the server ends when policies have been asked for the
// last time.
func (w *cluster) orphans(o *object) bool {
	return o.orphaning() || w.heldFor(o) == metav1.DeletePropagationOrphan
}

func (w *cluster) waits(o *object) bool {
	return o.foreground() || w.heldFor(o) == metav1.DeletePropagationForeground
}

func (w *cluster) heldFor(o *object) metav1.DeletionPropagation {
	if !o.Deleting || !o.has(ours) || o.has(orphan) || o.has(foreground) || !watched(w.server.kind(o.Kind)) {
		return ""
	}
	return w.propagation(o.UID)
}
