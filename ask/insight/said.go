package insight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// saying is an Event of Weir's controller about an object that is not deleted.
type saying struct {
	object, reason, message string
	uid                     types.UID
	at                      time.Time
}

// saidOf returns the Events about some objects, and those in v if it is a namespace, the last
// first. They are evidence only, because others can write Events as Weir.
func saidOf(events []corev1.Event, about map[types.UID]bool, v *graph.View) (out []saying) {
	for i := range events {
		e := &events[i]
		on := &e.InvolvedObject
		if e.Source.Component != component ||
			e.Reason != v1beta1.ReasonCollectionRefused && e.Reason != v1beta1.ReasonDeletionHeld ||
			!about[on.UID] && (v.Kind != namespaces || on.Namespace != v.Name) {
			continue
		}
		out = append(out, saying{named(on.Kind, on.Namespace, on.Name), e.Reason, words.Printable(e.Message),
			on.UID, e.LastTimestamp.Time})
	}
	slices.SortStableFunc(out, func(a, b saying) int {
		return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.object, b.object))
	})
	return out
}

// refusal is who refuses a request of Weir's controller about an object, and a command that shows
// more.
type refusal struct{ actor, look string }

// Heard records Events that a request of Weir's controller is refused: then who refuses has to act,
// and not the controller.
func (w *World) Heard(events []corev1.Event) {
	at := map[types.UID]time.Time{}
	for i := range events {
		e := &events[i]
		uid := e.InvolvedObject.UID
		if e.Source.Component != component || e.Reason != v1beta1.ReasonCollectionRefused ||
			e.LastTimestamp.Time.Before(at[uid]) {
			continue
		}
		at[uid] = e.LastTimestamp.Time
		actor, look := refuser("", words.Printable(e.Message))
		w.refuses(uid, refusal{cmp.Or(actor, unnamed), look})
	}
}

// HeardOf records refusals from the conditions of a whole namespace, which say why its content
// could not be deleted.
func (w *World) HeardOf(namespace *unstructured.Unstructured) {
	for _, text := range failures(namespace) {
		if actor, look := refuser("", text); actor != "" {
			w.refuses(namespace.GetUID(), refusal{actor, look})
		}
	}
}

func (w *World) refuses(uid types.UID, by refusal) {
	if w.refused == nil {
		w.refused = map[types.UID]refusal{}
	}
	w.refused[uid] = by
}

// evidence names the Event.
func (s saying) evidence(now time.Time) string {
	return fmt.Sprintf("the Event %s on %s, %s ago", s.reason, s.object, duration.HumanDuration(max(0, now.Sub(s.at))))
}

// Refusal is an Event that says what Weir's controller was refused, or what a policy kept.
type Refusal struct {
	*Object        // nil: it does not exist any more
	On      string `json:"on"` // the object as the Event names it
	Kept    bool   `json:"kept,omitempty"`
	Message string `json:"message"`
	Ago     string `json:"ago"`
	at      time.Time
}

// Refusals returns the last refusal of each object in Events, the last first.
func (w *World) Refusals(events []corev1.Event, now time.Time) []Refusal {
	last := map[types.UID]Refusal{}
	for i := range events {
		e := &events[i]
		on, kept, at := &e.InvolvedObject, e.Reason == v1beta1.ReasonKept, e.LastTimestamp.Time
		if e.Source.Component != component || !kept && e.Reason != v1beta1.ReasonCollectionRefused ||
			at.Before(last[on.UID].at) {
			continue
		}
		r := Refusal{On: named(on.Kind, on.Namespace, on.Name), Kept: kept, Message: words.Printable(e.Message),
			Ago: duration.HumanDuration(max(0, now.Sub(at))), at: at}
		if v, ok := w.Graph.Find(on.UID); ok {
			r.Object = new(objectOf(&v))
		}
		last[on.UID] = r
	}
	out := slices.AppendSeq([]Refusal{}, maps.Values(last)) // not nil: JSON has a list, even if it is empty
	slices.SortFunc(out, func(a, b Refusal) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.On, b.On)) })
	return out
}

// named names an object by its kind, as owner references and Events do.
func named(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return words.Printable(kind + " " + name)
}
