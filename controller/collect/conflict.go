package collect

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
)

// versionedTries is how often an action is tried with a resourceVersion.
const versionedTries = 3

// request carries out an action. A conflict means that the graph was behind. Then the object is
// read live, and if nothing that the decision rests on has changed, there or in the graph, the
// decision stands for the newer resourceVersion. Otherwise the watch has brought the change, or
// will, and with it another decision.
//
// An object that is written faster than it can be read and deleted would be tried forever. So after
// versionedTries, if live reads confirm all that its deletion rests on, it is deleted with the uid
// as the only precondition, as by the reference. A patch is never sent so: it would remove what was
// added in between.
func (w *Workers) request(ctx context.Context, a graph.Action) error {
	if err := w.stillAwaited(ctx, a); err != nil {
		return err
	}
	version := a.Object.ResourceVersion
	for try := 1; ; try++ {
		err := w.send(ctx, a, version)
		if !apierrors.IsConflict(err) || request.RefusedByWebhook(err) || version == "" {
			return err
		}
		last := try == versionedTries
		if last && (a.Verb != graph.Delete || !w.ownersGone(ctx, a.Object)) {
			return err
		}
		live, readErr := w.requester.GetObject(ctx, a.Object)
		if readErr != nil || live.UID != a.Object.UID || live.ResourceVersion == version || !w.store.Still(a, live) {
			return err
		}
		if version = live.ResourceVersion; last {
			version = ""
		}
	}
}

// mostOwnersRead bounds the live reads of ownersGone. An object with more owners has to wait until
// nobody writes it.
const mostOwnersRead = 8

// ownersGone reports, by live reads, whether each owner that the graph has of an object is gone, or
// is being deleted foreground and waits for it.
func (w *Workers) ownersGone(ctx context.Context, ref graph.Ref) bool {
	v, ok := w.store.Find(ref.UID)
	if !ok || len(v.Owners) > mostOwnersRead {
		return false
	}
	for _, o := range v.Owners {
		gv, err := schema.ParseGroupVersion(o.APIVersion)
		if err != nil {
			return false
		}
		var k graph.ServedKind
		w.store.Read(func(g *graph.Graph) { k = g.ServedKind(gv.WithKind(o.Kind)) })
		if len(k.Resources) != 1 || k.Namespaced && ref.Namespace == "" {
			return false
		}
		namespace := ""
		if k.Namespaced {
			namespace = ref.Namespace
		}
		if w.goneOrAwaits(ctx, gv, k.Resources[0], namespace, o.Name, o.UID) != nil {
			return false
		}
	}
	return true
}
