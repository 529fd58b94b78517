package brake

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

// writer is who wrote the owner references of an object last, by a name of that client's own
// choice.
type writer struct {
	manager string
	at      time.Time
}

func (w writer) String() string {
	if w.manager == "" {
		return ""
	}
	return cut(words.Printable(w.manager)+", "+w.at.UTC().Format(time.RFC3339), 256)
}

// writers reads who wrote the references of the samples, each once. What cannot be read is not
// known, and holds up nothing.
func (k *keeper) writers(ctx context.Context, samples []graph.Inferred) map[types.UID]writer {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found := map[types.UID]writer{}
	for _, s := range samples {
		live, err := k.Client.Resource(s.Kind.WithVersion(s.Version)).Namespace(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		if err == nil && live.GetUID() == s.UID {
			found[s.UID] = lastWriter(live.GetManagedFields())
		}
	}
	return found
}

// lastWriter is who wrote owner references last.
func lastWriter(fields []metav1.ManagedFieldsEntry) writer {
	return newest(fields, func(map[string]json.RawMessage) bool { return true })
}

// writerOf is who wrote the reference to an owner last; graph.UnknownWriter if managedFields do not
// say.
func writerOf(fields []metav1.ManagedFieldsEntry, owner types.UID) string {
	key, _ := json.Marshal(map[string]types.UID{"uid": owner}) // strings can be encoded
	last := newest(fields, func(references map[string]json.RawMessage) bool { return references["k:"+string(key)] != nil })
	return cmp.Or(last.manager, graph.UnknownWriter)
}

// newest is who wrote some of the owner references last.
func newest(fields []metav1.ManagedFieldsEntry, which func(references map[string]json.RawMessage) bool) (last writer) {
	for _, f := range fields {
		var wrote struct {
			Metadata struct {
				References map[string]json.RawMessage `json:"f:ownerReferences"`
			} `json:"f:metadata"`
		}
		if f.FieldsV1 == nil || json.Unmarshal(f.FieldsV1.GetRawBytes(), &wrote) != nil || wrote.Metadata.References == nil || f.Time == nil || !which(wrote.Metadata.References) {
			continue
		}
		if f.Time.After(last.at) {
			last = writer{f.Manager, f.Time.Time}
		}
	}
	return last
}

// signTimeout bounds the read for which a worker waits, or the other collector.
const signTimeout = 2 * time.Second

// signed finds out who wrote the reference for which an object is to go, where the Ledger wants to
// know, and tells whether that is known: the graph is told, too.
func (b *Brake) signed(ctx context.Context, a *graph.Action) bool {
	b.mu.Lock()
	signs := b.ledger.signs(*a)
	b.mu.Unlock()
	if !signs || b.Read == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, signTimeout)
	defer cancel()
	history := b.Store.History()
	live, err := b.Read(ctx, a.Object)
	if apierrors.IsNotFound(err) || err == nil && live.UID != a.Object.UID {
		b.missed(ctx, a.Object, history)
		return false
	}
	if err != nil {
		const stays = "an object stays, because it cannot be read who wrote its owner references; this is tried again each second, and other objects may wait for the same"
		b.unread.Do(func() { b.Log.Error(err, stays, "object", a.Object.String()) })
		return false
	}
	if !slices.ContainsFunc(live.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == a.Inferred.Reference }) {
		b.Log.V(1).Info("the owner references are others than those that the graph has, will try again", "object", a.Object.String())
		return false
	}
	b.mu.Lock()
	a.Inferred.Writer = b.ledger.named(writerOf(live.ManagedFields, a.Inferred.Reference))
	b.mu.Unlock()
	b.Store.Apply(graph.Wrote{Object: graph.ObjectOf(a.Object.Kind, live), Writer: a.Inferred.Writer})
	return true
}

// mostMissed bounds what is remembered of objects that were not found.
const mostMissed = 10_000

// missed takes in that an object was not found, as the history was. Its watch is given a moment to
// say that it is gone; where that does not come, the graph is told here: the object would be asked
// about for ever.
func (b *Brake) missed(ctx context.Context, ref graph.Ref, history uint32) {
	b.mu.Lock()
	again := b.missing[ref.UID]
	if len(b.missing) >= mostMissed {
		clear(b.missing)
	}
	b.missing[ref.UID] = true
	b.mu.Unlock()
	if !again || b.Gone == nil || !b.Gone(ctx, ref) {
		b.Log.V(1).Info("cannot read who wrote the owner references, since the object is not found, will try again", "object", ref.String())
		return
	}
	b.Log.Info("object is gone, and its watch did not say so", "object", ref.String(), "uid", ref.UID)
	b.Store.Apply(graph.NotFound{Kind: ref.Kind, UID: ref.UID, History: history})
	b.mu.Lock()
	delete(b.missing, ref.UID)
	b.mu.Unlock()
}

// by says which client wrote most of the references that were looked at; "" if none is known.
func by(of map[types.UID]writer) string {
	counts := map[string]int{}
	for _, w := range of {
		if w.manager != "" {
			counts[w.manager]++
		}
	}
	if len(counts) == 0 {
		return ""
	}
	most := slices.MaxFunc(slices.Sorted(maps.Keys(counts)), func(a, b string) int { return cmp.Compare(counts[a], counts[b]) })
	return fmt.Sprintf("The owner references of %d of %d examples were written by %s.", counts[most], len(of), words.Printable(cut(most, 128)))
}
