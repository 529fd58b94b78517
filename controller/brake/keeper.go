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
	refused refusal
}

// refusal is since when every answer of the API server was that there are no HeldCollections, or
// that they may not be read.
type refusal struct{ since time.Time }

// refusedFor is how long that has to be the only answer before it is believed. An API server that
// starts answers so to every client.
const refusedFor = time.Minute

// by records an answer, and reports whether the refusal is believed.
func (r *refusal) by(err error) bool {
	switch {
	case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		r.since = time.Time{}
	case r.since.IsZero():
		r.since = time.Now()
	}
	return !r.since.IsZero() && time.Since(r.since) >= refusedFor
}

// undefined reports whether HeldCollections cannot be listed because their CRD does not exist. An
// API server that starts may not serve them yet.
func (b *Brake) undefined(ctx context.Context, err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = b.Client.Resource(definitions).Get(ctx, Resource.GroupResource().String(), metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// record is what the keeper knows of one cause.
type record struct {
	cause
	seen    findings
	sets    *sets     // nil: decisions made before are not known yet
	next    time.Time // when to count again
	empty   time.Time // since when nothing was held; zero: something is
	ended   bool      // nothing is held any more, and the HeldCollection is to be deleted
	told    bool
	applied v1beta1.HeldCollectionSpec // the last decision that was carried out
	outcome string                     // what the last decision did
	// outcomeTold is the last outcome that an Event said.
	outcomeTold string
	// written is the status that was last written, and stored what the API server made of it, which
	// may know fewer fields. If either differs it is written again: other clients may have changed the
	// status, or created the object again without.
	written, stored *v1beta1.HeldCollectionStatus
}

// Begin has nothing deleted by inference until Run, or Heed, has read what is held.
func (b *Brake) Begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keeps, b.unsure = true, true
}

// again reads what was held before a restart of Weir, or in the history that the API server went
// back to, and reports whether that is known.
func (k *keeper) again(ctx context.Context) bool {
	k.mu.Lock()
	unsure, history := k.unsure, k.Brake.history
	k.mu.Unlock()
	if !unsure {
		return true
	}
	items, err := k.list(ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return false
	case k.undefined(ctx, err), k.refused.by(err):
		k.Log.Info("HeldCollections cannot be read: what is held will be forgotten when Weir ends. Does the cluster have "+
			"Weir's CRDs, and may Weir read them?", "err", err.Error())
	default:
		k.failing.Do(func() {
			k.Log.Info("cannot read what was held before, and waits for it; will try again", "err", err.Error())
		})
		return false
	}
	why := "it was held before Weir was restarted"
	if history > 0 {
		why = "it was held in the backup that was restored"
	}
	k.resume(items, why)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unsure = history != k.Brake.history
	return !k.unsure
}

// resume holds what HeldCollections say was held.
func (b *Brake) resume(items []v1beta1.HeldCollection, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range items {
		// Only Weir writes the status. An object without one was created by another client, and holds
		// nothing.
		if since := items[i].Status.Since; since != nil {
			c := causeOf(&items[i])
			if c.requested { // finalizers hold those
				b.since[c.kind] = since.Time
				continue
			}
			if b.Limits.Off() {
				continue
			}
			if b.ledger.holds(c.kind) != nil {
				continue
			}
			b.ledger.Hold(time.Now(), c.kind, since.Time, why)
			b.Log.Info("held since before", "name", c.String(), "since", since.Time, "because", why)
		}
	}
}

// list lists all HeldCollections.
func (b *Brake) list(ctx context.Context) ([]v1beta1.HeldCollection, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := b.Client.Resource(Resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list HeldCollections: %w", err)
	}
	items := make([]v1beta1.HeldCollection, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &items[i]); err != nil {
			return nil, fmt.Errorf("read HeldCollection %s: %w", list.Items[i].GetName(), err)
		}
	}
	return items, nil
}

// held returns all causes of which something is held.
func (k *keeper) held() map[cause]hold {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ledger.Tidy(time.Now())
	held := map[cause]hold{}
	for kind, acc := range k.ledger.kinds {
		if acc.held != nil {
			held[cause{kind: kind}] = *acc.held
		}
	}
	for kind, since := range k.kinds() {
		held[cause{kind: kind, requested: true}] = hold{since: since}
	}
	return held
}

// look brings all records and HeldCollections up to date.
func (k *keeper) look(ctx context.Context) {
	if !k.again(ctx) {
		return
	}
	held := k.held()
	k.forgetSets()
	for c := range held {
		if k.records[c] == nil {
			k.records[c] = &record{cause: c}
		}
	}
	if len(k.records) == 0 {
		return
	}
	items, err := k.list(ctx)
	if err != nil {
		k.failure(ctx, err)
	}
	byName := func(a, b cause) int { return cmp.Compare(a.String(), b.String()) }
	for _, c := range slices.SortedFunc(maps.Keys(k.records), byName) {
		r := k.records[c]
		var object *v1beta1.HeldCollection
		if i := slices.IndexFunc(items, func(h v1beta1.HeldCollection) bool { return h.Name == c.String() }); i >= 0 {
			object = &items[i]
		}
		if r.sets == nil && err == nil {
			r.begin(object)
		}
		if !r.ended {
			k.follow(r, held[c], object)
		}
		if err != nil {
			continue // nor can it be written
		}
		if k.wentBack() {
			return // a decision by what would be written now would be voided by the next look
		}
		if err := k.write(ctx, r, object); err != nil {
			k.failure(ctx, err)
		}
	}
}

// forgetSets voids digests and decisions from before the history went back.
func (k *keeper) forgetSets() {
	if !k.wentBack() {
		return
	}
	k.mu.Lock()
	k.history = k.Brake.history
	k.mu.Unlock()
	for _, r := range k.records {
		r.sets, r.applied, r.outcome, r.next = nil, v1beta1.HeldCollectionSpec{}, "", time.Time{}
	}
}

// wentBack reports whether the history has gone back since this look began.
func (k *keeper) wentBack() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.history != k.Brake.history
}

// begin voids a decision that was there before. It was about what an earlier process wrote, in a
// cluster that may have been restored since.
func (r *record) begin(object *v1beta1.HeldCollection) {
	void := ""
	if object != nil && object.Spec.Decision != "" {
		void = object.Spec.Digest
	}
	r.sets = newSets(void)
}

func (k *keeper) failure(ctx context.Context, err error) {
	if ctx.Err() == nil {
		k.failing.Do(func() { k.Log.Error(err, "what is held cannot be recorded, and stays held") })
	}
}

// follow brings a record up to date with a decision, and with the graph.
func (k *keeper) follow(r *record, h hold, object *v1beta1.HeldCollection) {
	if object != nil && k.decide(r, object.Spec) {
		r.next = time.Time{}
	}
	if time.Now().Before(r.next) {
		return
	}
	began := time.Now()
	if r.requested {
		r.seen = k.findRequested(r.kind)
	} else {
		r.seen = k.find(r.kind)
		r.seen.why = h.why
	}
	r.next = time.Now().Add(max(countEvery, countShare*time.Since(began)))
	k.metrics.holds(r.cause, r.seen.objects())
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
	if r.sets != nil {
		r.seen.digest = r.sets.take(r.seen.uids, r.seen.counted)
	}
	r.seen.since = h.since
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
	k.metrics.ends(r.cause)
	k.Log.Info("nothing is held any more", "name", r.String())
	if r.requested {
		return // a root that is held is asked about again and again
	}
	for found, _, next := k.inferred(r.kind, 0); ; found, _, next = k.inferred(r.kind, next) {
		for _, i := range found {
			k.requeue(i.UID)
		}
		if next == 0 {
			return
		}
	}
}

// write brings the HeldCollection up to date with the record.
func (k *keeper) write(ctx context.Context, r *record, object *v1beta1.HeldCollection) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client := k.Client.Resource(Resource)
	if r.ended {
		if object != nil {
			only := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &object.UID}}
			if err := client.Delete(ctx, object.Name, only); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete HeldCollection %s: %w", object.Name, err)
			}
		}
		delete(k.records, r.cause)
		return nil
	}
	name := r.String()
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
	if r.written != nil && equality.Semantic.DeepEqual(r.written, want) &&
		equality.Semantic.DeepEqual(r.stored, &object.Status) {
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
	patched, err := client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("write the status of HeldCollection %s: %w", name, err)
	}
	var now v1beta1.HeldCollection
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(patched.Object, &now); err != nil {
		return fmt.Errorf("read HeldCollection %s: %w", name, err)
	}
	r.written, r.stored = want, &now.Status
	k.tell(r, object.UID)
	return nil
}
