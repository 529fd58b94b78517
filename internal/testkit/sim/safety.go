package sim

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/graph"
)

// allowed is the safety of one write, on what the server has now.
func (w *cluster) allowed(t *task, o *object) error {
	switch t.action.Verb {
	case graph.Delete:
		return w.mayDelete(t, o)
	case graph.Release:
		return w.mayRelease(t, o)
	case graph.Unblock:
		return w.mayUnblock(t, o)
	case graph.Unfinalize:
		off := slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return slices.Contains(t.action.Finalizers, f) })
		for _, f := range off {
			if f != orphan && f != foreground && f != ours {
				return fmt.Errorf("%s is nobody's but its owner's", f)
			}
		}
		if slices.Contains(off, ours) && t.ruled == "" {
			return fmt.Errorf("policies were not asked about %s", o.UID)
		}
		if slices.Contains(off, orphan) || slices.Contains(off, ours) && !o.has(foreground) && t.ruled == metav1.DeletePropagationOrphan {
			if d := w.server.lost(o, t.unfollowed, t.told); d != nil {
				return fmt.Errorf("%s still refers to it, which the collector had been told, or could not know", d.UID)
			}
		}
		if !o.Deleting || len(off) == 0 || len(t.action.Finalizers) != len(o.Finalizers)-len(off) {
			return fmt.Errorf("finalizers %v of %v left", t.action.Finalizers, o.Finalizers)
		}
	}
	return nil
}

func (w *cluster) mayDelete(t *task, o *object) error {
	if len(o.Owners) == 0 {
		return fmt.Errorf("%s has no owners", o.UID)
	}
	if o.Deleting {
		return fmt.Errorf("%s is being deleted already", o.UID)
	}
	if o.owedLife() {
		return fmt.Errorf("%s was let go by an orphaning owner, and what it still refers to never was", o.UID)
	}
	for _, r := range o.Owners {
		k := w.server.typeOf(r)
		if k == nil {
			return fmt.Errorf("owner %s is of a kind that never was", r.UID)
		}
		if k.forbidden {
			return fmt.Errorf("owner %s is of a kind that cannot be read", r.UID)
		}
		if k.Namespaced && o.Namespace == "" {
			return fmt.Errorf("owner %s is in no namespace", r.UID)
		}
		owner := w.server.owner(r, o.Namespace)
		if owner != nil && !owner.wasForeground {
			return fmt.Errorf("owner %s is there", r.UID)
		}
		if owner == nil && t.orphaning[r.UID] && meant(w.server.buried[r.UID], k, r, o.Namespace) != nil {
			return fmt.Errorf("owner %s was orphaning when it was last seen", r.UID)
		}
		if gone := meant(w.server.buried[r.UID], k, r, o.Namespace); owner == nil && t.action.Inferred.Conclusion == graph.Asked &&
			(gone == nil || !gone.wasForeground && !t.from.heard[r.UID]) { // one that waited may have gone since
			return fmt.Errorf("it counts as asked for, and the collector was not told how owner %s went", r.UID)
		}
	}
	w.stats["deletes "+t.action.Inferred.Conclusion.String()]++
	return nil
}

func (w *cluster) mayRelease(t *task, o *object) error {
	stay := map[string]int{}
	for _, r := range t.action.Owners {
		stay[r.String()]++
	}
	removed := 0
	for _, r := range o.Owners {
		if stay[r.String()]--; stay[r.String()] >= 0 {
			continue
		}
		removed++
		if owner := w.server.owner(r, o.Namespace); owner != nil && !owner.wasForeground && !owner.wasOrphaning {
			return fmt.Errorf("owner %s is there", r.UID)
		}
	}
	if removed == 0 || removed+len(t.action.Owners) != len(o.Owners) {
		return fmt.Errorf("%d of %d references removed, %d left", removed, len(o.Owners), len(t.action.Owners))
	}
	return nil
}

func (w *cluster) mayUnblock(t *task, o *object) error {
	if len(t.action.Owners) != len(o.Owners) {
		return fmt.Errorf("%d references become %d", len(o.Owners), len(t.action.Owners))
	}
	changed := 0
	for i, r := range o.Owners {
		after := t.action.Owners[i]
		if r.String() == after.String() {
			continue
		}
		changed++
		unblocked := r
		unblocked.BlockOwnerDeletion = new(bool)
		if after.String() != unblocked.String() {
			return fmt.Errorf("reference %s becomes %s", &r, &after)
		}
		owner := w.server.owner(r, o.Namespace)
		if owner != nil && owner.UID != o.UID && !owner.wasForeground {
			return fmt.Errorf("owner %s does not wait", r.UID)
		}
	}
	if changed == 0 {
		return fmt.Errorf("nothing was blocking")
	}
	return nil
}

// blocking tells whether a reference holds up its owner.
func blocking(r metav1.OwnerReference) bool {
	return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
}
