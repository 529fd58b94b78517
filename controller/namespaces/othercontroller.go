package namespaces

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

// others is whether another namespace controller works beside this one, which must be the only one in replace mode. The first namespace
// that is deleted tells: it is left alone for a while, in which another controller would begin (5 s after the deletion, RB 7.7). Afterwards
// another is known by what it writes, if that differs from what this one wrote; and where a namespace goes that this one is draining, the
// next one tells again. While another works namespaces are left to it; then the next that is deleted tells again.
type others struct {
	passed bool      // no controller touched the last namespace that was left alone
	at     time.Time // when another was last seen; zero: never
	since  time.Time // by the API server's clock: what others wrote before is over
	// left are the namespaces that are left alone meanwhile.
	left map[string]types.UID
}

// alone is how long to leave a namespace alone that is being deleted, because another controller works, or might.
func (d *Drainer) alone(ns *corev1.Namespace, seen time.Time) time.Duration {
	if d.Companion || d.Alone <= 0 {
		return 0
	}
	d.mu.Lock()
	since := d.others.since
	d.mu.Unlock()
	if writer, at := writtenBy(ns, since, d.Clock.Now()); writer != "" {
		d.another(ns.Name, ns.UID, fmt.Sprintf("%q wrote its status as a namespace controller does", writer), at)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	o := &d.others
	if !o.at.IsZero() {
		again := o.at.Add(d.leaveFor())
		if left := time.Until(again); left > 0 {
			return left
		}
		if seen.Before(again) {
			seen = again
		}
	}
	left := d.Alone - time.Since(seen)
	switch {
	case o.passed:
	case left > 0:
		o.left[ns.Name] = ns.UID
		return left
	default:
		o.passed = true
		clear(o.left)
		d.Log.Info("no other namespace controller works", "namespace", ns.Name, "leftAlone", d.Alone.String())
		defer d.Other(false)
	}
	return 0
}

// leaveFor is how long namespaces are left to another controller before one tells again.
func (d *Drainer) leaveFor() time.Duration { return 6 * d.Alone }

// clocksDiffer is how far the clocks of API servers may be apart: a write that is later than that was not told by one.
const clocksDiffer = 30 * time.Second

// writtenBy is who else writes what only a namespace controller does, and when: one of its conditions. (The other thing that only such a one
// does, taking its finalizer off, ends the namespace's time here.) Operators write conditions of their own, and have finalizers of their own in
// spec.finalizers, which they take off through the same subresource. People use kubectl, and are no controllers.
//
// Whoever may write a namespace can make managedFields say what he likes. Then namespaces wait, for a minute after each such write to one
// that is being deleted, and no more: a write counts once, and one that says to be of the future never. Or he hides another controller, until that
// lets a namespace go.
func writtenBy(ns *corev1.Namespace, since, now time.Time) (writer string, at time.Time) {
	for _, f := range ns.ManagedFields {
		if f.Subresource == "status" && f.Operation == metav1.ManagedFieldsOperationUpdate && f.Time != nil &&
			f.Time.After(since) && f.Time.Time.Before(now.Add(clocksDiffer)) &&
			f.Manager != "weir" && !strings.HasPrefix(f.Manager, "kubectl") && asController(f.FieldsV1) {
			return f.Manager, f.Time.Time
		}
	}
	return "", time.Time{}
}

// asController tells whether fields are among those that only a namespace controller writes.
func asController(fields *metav1.FieldsV1) bool {
	var wrote struct {
		Status struct {
			Conditions map[string]json.RawMessage `json:"f:conditions"`
		} `json:"f:status"`
	}
	if fields == nil || json.Unmarshal(fields.GetRawBytes(), &wrote) != nil {
		return false
	}
	return slices.ContainsFunc(kinds.OfNamespaceController, func(t corev1.NamespaceConditionType) bool {
		_, ok := wrote.Status.Conditions[fmt.Sprintf(`k:{"type":%q}`, t)]
		return ok
	})
}

// wentByOthers is told of each namespace that is gone, and whether this one let it go.
func (d *Drainer) wentByOthers(name string, ours bool) {
	d.mu.Lock()
	uid, ok := d.others.left[name]
	delete(d.others.left, name)
	if p := d.begun[name]; p != nil && !ours && !p.finalizing {
		d.others.passed = false // a person may have let it go; the next one tells
	}
	d.mu.Unlock()
	if ok {
		d.another(name, uid, "it finalized the namespace, which weir had left alone", time.Time{})
	}
}

// awaitNext has the next namespace tell: this one was gone before it was finalized.
func (d *Drainer) awaitNext() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.others.passed = false
}

// another says that another controller works. What others wrote up to now, or to the time of the write that told, is over by that.
func (d *Drainer) another(name string, uid types.UID, how string, wrote time.Time) {
	d.mu.Lock()
	o := &d.others
	first := o.at.IsZero() || time.Since(o.at) > d.leaveFor()
	o.passed, o.at, o.since = false, time.Now(), d.Clock.Now()
	if wrote.After(o.since) {
		o.since = wrote
	}
	clear(o.left)
	d.mu.Unlock()
	if !first {
		return
	}
	text := fmt.Sprintf("another namespace controller works in this cluster (%s): weir leaves namespaces to it, and looks again in %s. In replace mode it must be off: "+
		"append -namespace-controller to kube-controller-manager's --controllers, or run weir with --drain-namespaces=false", how, d.leaveFor())
	d.Log.Error(nil, text, "namespace", name, "uid", uid)
	d.Reporter.OtherNamespaceController(graph.Ref{Kind: kinds.Namespaces, Name: name, UID: uid}, text)
	d.Other(true)
}
