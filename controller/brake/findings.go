package brake

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// findings are what the graph shows of a cause that is held.
type findings struct {
	items    []item // the objects that wait for a decision, sorted by uid
	going    int    // objects about which a decision is not carried out yet
	open     int    // owners of which it is not known whether they exist
	relisted bool   // everything is being listed again, and nothing else is known
	digest   string // of items; "" if there are none
	because  map[graph.Conclusion]int
	weight   counts // what would be deleted in all
	complete bool   // weight is all, and not only a lower bound
	samples  []graph.Inferred
	why      string
}

const (
	mostSamples, mostKinds = 10, 20
	// perWeighing is how many objects are weighed under one lock of the graph.
	perWeighing = 2000
)

// find returns what is held of a cause. While everything is being listed again nothing is known.
func (b *Brake) find(r *record) findings {
	f := findings{because: map[graph.Conclusion]int{}, weight: counts{}, why: r.hold.why}
	switch {
	case b.Store.Rewound() != "":
		f.relisted = true
		return f
	case r.requested:
		b.findRequested(r.kind, &f)
	default:
		for found, open := range b.inferred(r.kind) {
			f.open += open
			b.divide(found, &f)
		}
		f.going += b.releasing(r.kind)
	}
	b.weigh(&f)
	return f
}

// inferred yields the objects that are garbage by inference about owners of a kind, some at a time,
// and how many owners may yet turn out to be absent; see graph.InferredFrom.
func (b *Brake) inferred(owners schema.GroupResource) iter.Seq2[[]graph.Inferred, int] {
	return func(yield func([]graph.Inferred, int) bool) {
		for next := uint32(0); ; {
			var found []graph.Inferred
			var open int
			b.Store.Read(func(g *graph.Graph) { found, open, next = g.InferredFrom(owners, next) })
			if !yield(found, open) || next == 0 {
				return
			}
		}
	}
}

// divide adds the objects that wait for a decision, and how many go by one. Discarded objects are
// in neither.
func (b *Brake) divide(found []graph.Inferred, f *findings) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, i := range found {
		if _, kept := b.discarded[i.UID]; kept {
			continue
		}
		waits, goes := b.ledger.Stands(i.Ref, i.Inference)
		if goes {
			f.going++
		}
		if waits {
			f.because[i.Conclusion]++
			f.take(i, 0)
		}
	}
}

// take adds an object that waits for a decision, and how many it goes with if that is decided, too.
func (f *findings) take(i graph.Inferred, counted int) {
	f.items = append(f.items, item{i.UID, counted})
	if len(f.samples) < mostSamples {
		f.samples = append(f.samples, i)
	}
}

// weigh counts all that goes with what was found.
func (b *Brake) weigh(f *findings) {
	slices.SortFunc(f.items, func(a, b item) int { return cmp.Compare(a.uid, b.uid) })
	f.items = slices.Compact(f.items)
	f.complete = len(f.items) <= perWeighing // objects that two pieces own together are counted with neither
	for piece := range slices.Chunk(uidsOf(f.items), perWeighing) {
		b.Store.Read(func(g *graph.Graph) {
			weight, complete := g.Weigh(mostWeighed, piece...)
			for _, w := range weight {
				f.weight[w.Kind] += w.Count
			}
			f.complete = f.complete && complete
		})
	}
}

// any reports whether something is held, goes by a decision, or may turn out to be held.
func (f *findings) any() bool { return len(f.items) > 0 || f.going > 0 || f.open > 0 || f.relisted }

func (f *findings) objects() int64 {
	n := 0
	for _, of := range f.weight {
		n += of
	}
	return int64(n)
}

// names are the conclusions in the API, and sentences say them to people.
var (
	names = map[graph.Conclusion]v1beta1.HeldConclusion{
		graph.OwnerNotFound:   "OwnerNotFound",
		graph.DefinitionGone:  "DefinitionGone",
		graph.ReferenceEdited: "ReferenceEdited",
	}
	sentences = map[graph.Conclusion]string{
		graph.OwnerNotFound:   "their owners were not found, and were not seen to be deleted",
		graph.DefinitionGone:  "their owners were deleted with the definition of their kind",
		graph.ReferenceEdited: "their owners were deleted before an edit left them no other owner",
	}
)

// status returns the status that a HeldCollection should have.
func (r *record) status(object *v1beta1.HeldCollection, now time.Time) *v1beta1.HeldCollectionStatus {
	f := &r.seen
	since := metav1.NewTime(r.hold.since.Truncate(time.Second))
	st := &v1beta1.HeldCollectionStatus{Since: &since, Digest: f.digest, Held: int64(len(f.items)), Objects: f.objects(),
		Conditions: slices.Clone(object.Status.Conditions)}
	held := r.condition()
	held.ObservedGeneration, held.LastTransitionTime = object.Generation, metav1.NewTime(now.Truncate(time.Second))
	meta.SetStatusCondition(&st.Conditions, held)
	st.Cause = v1beta1.HeldCause{Type: v1beta1.HeldInferred, Group: r.kind.Group, Resource: r.kind.Resource}
	if r.requested {
		st.Cause.Type = v1beta1.HeldForRequest
	}
	for _, c := range f.conclusions() {
		st.Conclusions = append(st.Conclusions, names[c])
	}
	kinds := slices.SortedFunc(maps.Keys(f.weight), func(a, b schema.GroupResource) int {
		return cmp.Or(f.weight[b]-f.weight[a], cmp.Compare(a.String(), b.String()))
	})
	for _, k := range kinds[:min(len(kinds), mostKinds)] {
		st.Kinds = append(st.Kinds, v1beta1.HeldKind{Group: k.Group, Resource: k.Resource, Objects: int64(f.weight[k])})
	}
	for _, s := range f.samples {
		st.Samples = append(st.Samples, v1beta1.HeldSample{
			Group: s.Kind.Group, Resource: s.Kind.Resource, Namespace: s.Namespace,
			Name: cut(s.Name, 253), Why: cut(s.Why, 1024),
		})
	}
	return st
}

// condition returns the condition Held: whether something waits for a decision, what is held, why,
// and what a person can do.
func (r *record) condition() metav1.Condition {
	f := &r.seen
	var parts []string
	if r.outcome != "" {
		parts = append(parts, r.outcome)
	}
	if f.going > 0 {
		parts = append(parts, "The decision is not carried out yet for "+words.Count(f.going, "object", "objects")+".")
	}
	held := metav1.Condition{Type: v1beta1.ConditionHeld, Status: metav1.ConditionFalse}
	switch {
	case len(f.items) > 0:
		held.Status, held.Reason = metav1.ConditionTrue, v1beta1.ReasonAwaitsDecision
		parts = append(parts, r.question())
	case f.relisted:
		held.Status, held.Reason = metav1.ConditionUnknown, v1beta1.ReasonOwnersUnknown
		parts = append(parts, "Weir is listing everything again. What is held is not known until then.")
	case f.going > 0:
		held.Reason = v1beta1.ReasonDecided
		parts = append(parts, "Nothing else waits for a decision.")
	case f.open > 0:
		held.Status, held.Reason = metav1.ConditionUnknown, v1beta1.ReasonOwnersUnknown
		parts = append(parts, fmt.Sprintf("Nothing is held. %d owners are still being looked up.", f.open))
	default:
		held.Reason = v1beta1.ReasonNothingHeld
		parts = append(parts, "Nothing is held any more.")
	}
	held.Message = cut(strings.Join(parts, " "), 2048)
	return held
}

// question returns what is held, and how a person decides about it.
func (r *record) question() string {
	f, least := &r.seen, ""
	if !f.complete {
		least = "at least "
	}
	proceed := fmt.Sprintf("To have them deleted: kubectl patch held %s --type merge -p "+
		"'{\"spec\":{\"decision\":\"Proceed\",\"digest\":\"%s\"}}'. ", r.cause, f.digest)
	if r.requested {
		return fmt.Sprintf("Held: %s of %s, which would delete %s%s in all (%s). ",
			words.Count(len(f.items), "requested deletion", "requested deletions"), r.kind, least,
			words.Count(f.objects(), "object", "objects"), f.why) + proceed +
			"To keep what depends on an object, delete the object again with --cascade=orphan. A deletion that comes within " +
			"the limit continues by itself."
	}
	var because []string
	for _, c := range f.conclusions() {
		because = append(because, fmt.Sprintf("%d: %s", f.because[c], sentences[c]))
	}
	return fmt.Sprintf("Held: %s (%s%d with all that would be deleted with them), because of owners of "+
		"the kind %s (%s). Limit: %s. ", words.Count(len(f.items), "object", "objects"), least, f.objects(), r.kind,
		strings.Join(because, "; "), f.why) + proceed +
		"To keep them, and remove those owner references: the same with Discard. " +
		"Objects whose owner references are repaired are no longer held."
}

func (f *findings) conclusions() []graph.Conclusion { return slices.Sorted(maps.Keys(f.because)) }

// cut shortens a text to most characters, as the schema allows.
func cut(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return string(r[:most-1]) + "…"
}

// patchOf returns a status as a merge patch. Fields that are not set are removed.
func patchOf(st *v1beta1.HeldCollectionStatus) (map[string]any, error) {
	patch := map[string]any{"cause": nil, "conclusions": nil, "conditions": nil, "digest": nil, "held": nil,
		"objects": nil, "kinds": nil, "samples": nil}
	data, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("encode a status: %w", err)
	}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, fmt.Errorf("encode a status: %w", err)
	}
	return patch, nil
}

// tell sends Events when something begins to be held, and about decisions.
func (k *keeper) tell(r *record, uid types.UID) {
	on := graph.Ref{Kind: Resource.GroupResource(), Name: r.String(), UID: uid}
	switch message := r.condition().Message; {
	case !r.told && len(r.seen.items) > 0:
		r.told = true
		k.Reporter.Warn(on, events.ReasonCollectionHeld, message)
		k.Log.Info("held", "name", on.Name, "objects", r.seen.objects(), "digest", r.seen.digest, "message", message)
	case r.outcome != r.outcomeTold:
		r.outcomeTold = r.outcome
		k.Reporter.Tell(on, events.ReasonDecision, r.outcome)
	}
}
