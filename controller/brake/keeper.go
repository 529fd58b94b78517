package brake

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const (
	// lookEvery is how soon a decision is seen.
	lookEvery = 2 * time.Second
	// countEvery is the least time between two counts of what is held. A count walks over the graph,
	// and may take one part in countShare of the time.
	countEvery, countShare = 5 * time.Second, 50
	// calm is how long nothing has to be held before a hold ends.
	calm = 10 * time.Second
	// requestTimeout bounds a request; failureEvery is how often a failure is logged.
	requestTimeout, failureEvery = 10 * time.Second, time.Minute
)

// Resource is the resource of HeldCollections.
var Resource = v1beta1.GroupVersion.WithResource("heldcollections")

// keeper keeps a HeldCollection for each cause that is held.
type keeper struct {
	*Brake
	records map[cause]*record
	history int            // Brake.history at the begin of this look
	failing rate.Sometimes // logs a failure
}

// cause is what a HeldCollection is about: inference about the owners of a kind, or requested
// deletions of a kind.
type cause struct {
	kind      schema.GroupResource
	requested bool
}

// String returns the name of the HeldCollection.
func (c cause) String() string {
	if c.requested {
		return v1beta1.HeldRequested + c.kind.String()
	}
	return c.kind.String()
}

// causeOf returns what a HeldCollection is about.
func causeOf(h *v1beta1.HeldCollection) cause {
	if c := h.Status.Cause; c.Resource != "" {
		return cause{schema.GroupResource{Group: c.Group, Resource: c.Resource}, c.Type == v1beta1.HeldForRequest}
	}
	return cause{kind: schema.ParseGroupResource(h.Name)} // the status does not say: in doubt more is held
}

// record is what the keeper knows of one cause.
type record struct {
	cause
	hold    hold
	seen    findings
	sets    *sets
	next    time.Time // when to count again
	empty   time.Time // since when nothing was held; zero: something is
	ended   bool      // nothing is held any more, and the HeldCollection is to be deleted
	told    bool
	applied v1beta1.HeldCollectionSpec // the last decision that was carried out
	outcome string                     // what the last decision did
	// outcomeTold is the last outcome that an Event said.
	outcomeTold string
}

// look brings all records and HeldCollections up to date.
func (k *keeper) look(ctx context.Context) {
	k.mu.Lock()
	unsure, held := k.unsure, k.heldLocked()
	if k.history != k.Brake.history { // digests and decisions were of a history that is over
		k.history = k.Brake.history
		clear(k.records)
	}
	k.mu.Unlock()
	if !unsure && len(held)+len(k.records) == 0 {
		return
	}
	items, err := k.list(ctx)
	if err != nil && (!unsure || !k.undefined(ctx, err)) {
		k.failure(ctx, err)
		return
	}
	if unsure {
		if held = k.resume(items); held == nil {
			return
		}
	}
	objects := map[string]*v1beta1.HeldCollection{}
	for i := range items {
		objects[items[i].Name] = &items[i]
	}
	for c, h := range held {
		if k.records[c] == nil {
			k.records[c] = newRecord(c, objects[c.String()])
		}
		k.records[c].hold = h
	}
	byName := func(a, b cause) int { return cmp.Compare(a.String(), b.String()) }
	for _, c := range slices.SortedFunc(maps.Keys(k.records), byName) {
		r, object := k.records[c], objects[c.String()]
		if !r.ended {
			k.follow(r, object)
		}
		if k.wentBack() {
			return // a decision by what would be written now would be voided by the next look
		}
		if err := k.write(ctx, r, object); err != nil {
			k.failure(ctx, err)
		}
	}
}

// newRecord returns a record. A decision that is there before does not count. It was about what an
// earlier process wrote, in a cluster that may have been restored since.
func newRecord(c cause, object *v1beta1.HeldCollection) *record {
	void := ""
	if object != nil && object.Spec.Decision != "" {
		void = object.Spec.Digest
	}
	return &record{cause: c, sets: newSets(void)}
}

// heldLocked returns all causes of which something is held.
func (b *Brake) heldLocked() map[cause]hold {
	b.ledger.Tidy(time.Now())
	held := map[cause]hold{}
	for kind, acc := range b.ledger.kinds {
		if acc.held != nil {
			held[cause{kind: kind}] = *acc.held
		}
	}
	for kind, since := range b.since {
		held[cause{kind: kind, requested: true}] = hold{since: since}
	}
	return held
}

// resume holds what HeldCollections say was held before a restart of Weir, or in the history that
// the API server went back to, and returns all that is held. It returns nil if the history went
// back once more.
func (k *keeper) resume(items []v1beta1.HeldCollection) map[cause]hold {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.history != k.Brake.history {
		return nil
	}
	for i := range items {
		c, since := causeOf(&items[i]), items[i].Status.Since
		switch {
		case since == nil: // only Weir writes the status: another client has made this one, and it holds nothing
		case c.requested: // finalizers hold those
			k.since[c.kind] = since.Time
		case !k.Limits.Off() && k.ledger.holds(c.kind) == nil:
			k.ledger.Hold(time.Now(), c.kind, since.Time,
				"it was held before Weir was restarted, or in a backup that was restored")
		}
	}
	k.unsure = false
	return k.heldLocked()
}

// undefined reports whether HeldCollections cannot be listed because their definition does not
// exist: then none were written. An API server that starts may not serve them yet.
func (b *Brake) undefined(ctx context.Context, err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	definitions := b.Client.Resource(kinds.Definitions.WithVersion("v1"))
	_, err = definitions.Get(ctx, Resource.GroupResource().String(), metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// list lists all HeldCollections.
func (b *Brake) list(ctx context.Context) ([]v1beta1.HeldCollection, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := b.Client.Resource(Resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list HeldCollections: %w", err)
	}
	var all v1beta1.HeldCollectionList
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), &all); err != nil {
		return nil, fmt.Errorf("read HeldCollections: %w", err)
	}
	return all.Items, nil
}

// wentBack reports whether the history has gone back since this look began.
func (k *keeper) wentBack() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.history != k.Brake.history
}

func (k *keeper) failure(ctx context.Context, err error) {
	if ctx.Err() == nil {
		k.failing.Do(func() { k.Log.Error(err, "what is held cannot be read or recorded, and stays held") })
	}
}

// follow brings a record up to date with a decision, and with the graph.
func (k *keeper) follow(r *record, object *v1beta1.HeldCollection) {
	if object != nil && k.decide(r, object.Spec) {
		r.next = time.Time{}
	}
	if time.Now().Before(r.next) {
		return
	}
	began := time.Now()
	r.seen = k.find(r)
	r.next = time.Now().Add(max(countEvery, countShare*time.Since(began)))
	k.metrics.held.WithLabelValues(r.String()).Set(float64(r.seen.objects()))
	switch {
	case r.seen.any():
		r.empty = time.Time{}
	case r.empty.IsZero():
		r.empty = time.Now()
	case time.Since(r.empty) >= calm:
		r.ended = true
		k.end(r)
		return
	}
	r.seen.digest = r.sets.take(r.seen.items)
}

// end ends the hold of a record, because nothing is held any more. What has come to be held
// meanwhile is decided about again.
func (k *keeper) end(r *record) {
	k.mu.Lock()
	if r.requested {
		delete(k.since, r.kind)
	} else {
		k.ledger.Ends(r.kind)
	}
	k.mu.Unlock()
	k.metrics.held.DeleteLabelValues(r.String())
	k.Log.Info("nothing is held any more", "name", r.String())
	if r.requested {
		return // a root that is held is asked about again and again
	}
	for found := range k.inferred(r.kind) {
		for _, i := range found {
			k.requeue(i.UID)
		}
	}
}

// write brings the HeldCollection up to date with the record.
func (k *keeper) write(ctx context.Context, r *record, object *v1beta1.HeldCollection) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client, name := k.Client.Resource(Resource), r.String()
	if r.ended {
		if object != nil {
			only := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &object.UID}}
			if err := client.Delete(ctx, name, only); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete HeldCollection %s: %w", name, err)
			}
		}
		delete(k.records, r.cause)
		return nil
	}
	if object == nil {
		made, err := client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1beta1.GroupVersion.String(), "kind": "HeldCollection", "metadata": map[string]any{"name": name},
		}}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create HeldCollection %s: %w", name, err)
		}
		object = &v1beta1.HeldCollection{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: made.GetUID(), Generation: made.GetGeneration()}}
	}
	want := r.status(object, time.Now())
	if equality.Semantic.DeepEqual(want, &object.Status) {
		return nil
	}
	status, err := patchOf(want)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encode the status of HeldCollection %s: %w", name, err)
	}
	if _, err := client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("write the status of HeldCollection %s: %w", name, err)
	}
	k.tell(r, object.UID)
	return nil
}
