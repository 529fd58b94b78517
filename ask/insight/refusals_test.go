package insight

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestRefusalsAreThoseOfWeir: the last of each object first, also of one that is gone; what they
// say moves no cursor.
func TestRefusalsAreThoseOfWeir(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	event := func(from, reason, uid, message string, ago time.Duration) corev1.Event {
		return corev1.Event{
			Reason: reason, Message: message, Source: corev1.EventSource{Component: from}, LastTimestamp: metav1.NewTime(now.Add(-ago)),
			InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: "shop", Name: uid, UID: types.UID(uid)},
		}
	}
	w := NewWorld("", nil)
	got := w.Refusals([]corev1.Event{
		event("weir", "CollectionRefused", "a", "not today\x1b[2J", 5*time.Minute),
		event("weir", "CollectionRefused", "a", "earlier", 9*time.Minute),
		event("weir", "Kept", "b", "protected", time.Minute),
		event("weir", "Cascade", "c", "3 objects", 0),
		event("another", "Kept", "d", "not ours", 0),
	}, now)
	want := []Refusal{
		{On: "ConfigMap shop/b", Kept: true, Message: "protected", Ago: "60s"},
		{On: "ConfigMap shop/a", Message: `not today\x1b[2J`, Ago: "5m"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Refusal{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if none := w.Refusals(nil, now); none == nil {
		t.Error("none are no list")
	}
}
