package events

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

func TestBlockedWaveIsToldOnceForEachReason(t *testing.T) {
	events := record.NewFakeRecorder(10)
	r := New(events, func(schema.GroupResource) schema.GroupVersionKind {
		return schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	})
	shop, other := graph.Ref{Kind: kinds.Namespaces, Name: "shop", UID: "1"},
		graph.Ref{Kind: kinds.Namespaces, Name: "shop", UID: "2"}
	r.Once(shop, ReasonWaveBlocked, "waiting for 2 pods")
	r.Once(shop, ReasonWaveBlocked, "waiting for 2 pods")
	r.Once(shop, ReasonWaveBlocked, "waiting for 1 pods")
	r.Once(other, ReasonWaveBlocked, "waiting for 1 pods") // the namespace of the same name that came later
	close(events.Events)
	var reported []string
	for e := range events.Events {
		reported = append(reported, e)
	}
	if len(reported) != 3 || reported[0] != "Warning WaveBlocked waiting for 2 pods" {
		t.Errorf("told: %q", reported)
	}
}

func TestDeletionThatWaitsForUnseenKindsIsToldOnceAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := record.NewFakeRecorder(10)
		r := New(events, func(schema.GroupResource) schema.GroupVersionKind { return schema.GroupVersionKind{} })
		a := graph.Action{Verb: graph.Wait, Object: graph.Ref{UID: "1"}, Unseen: "gadgets", Why: "orphaning: gadgets"}
		if said, again := r.Held(a); said || again != heldAfter {
			t.Errorf("to come again after %s", again)
		}
		<-time.After(2 * time.Second)
		if said, again := r.Held(a); said || again != heldAfter-2*time.Second || len(events.Events) > 0 {
			t.Errorf("to come again after %s, told %d times", again, len(events.Events))
		}
		<-time.After(3 * time.Second)
		for range 3 {
			if said, again := r.Held(a); !said {
				t.Errorf("not said, to come again after %s", again)
			}
		}
		if n := len(events.Events); n != 1 {
			t.Errorf("told %d times", n)
		}
		r.Succeeded(a)
		if said, again := r.Held(a); said || again != heldAfter {
			t.Errorf("another time, to come again after %s", again)
		}
	})
}

// Who chooses finalizers, or answers as a webhook, chooses how long a text would be. What is cut
// off is no news.
func TestTextOfAnEventIsBounded(t *testing.T) {
	r, own := newReporter()
	long := strings.Repeat("a finalizer ", 100_000)
	r.Once(web, ReasonWaveBlocked, long)
	r.Once(web, ReasonWaveBlocked, long+"and another")
	r.Tell(web, ReasonCascade, long)
	r.Cascade(graph.Claim{APIVersion: "v1", Kind: "Team", Name: "a", UID: "t"}, long, `[{"name": "x"}]`)
	r.Rewound(long)
	r.Decided(graph.Action{Object: web, Mismatched: &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet",
		Name: long, UID: "o"}})
	if len(own.lines) != 5 {
		t.Errorf("%d Events, want 5", len(own.lines))
	}
	for _, line := range own.lines {
		if _, text, _ := strings.Cut(line, ": "); len(text) > mostNote || !strings.HasSuffix(text, "…") {
			t.Errorf("%d bytes, %s", len(text), line[:100])
		}
	}
}
