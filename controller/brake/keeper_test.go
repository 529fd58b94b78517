package brake

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// TestAProcessHoldsWhatTheOneBeforeWrote: and no more than that.
func TestAProcessHoldsWhatTheOneBeforeWrote(t *testing.T) {
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	since := metav1.NewTime(time.Unix(0, 0))
	cause := func(of v1beta1.HeldCauseType) v1beta1.HeldCollectionStatus {
		return v1beta1.HeldCollectionStatus{Since: &since, Cause: v1beta1.HeldCause{Type: of, Group: "example.com", Resource: "widgets"}}
	}
	for name, c := range map[string]struct {
		held      string
		status    v1beta1.HeldCollectionStatus
		inferred  bool // owners of the kind are held
		requested bool // deletions of the kind are
	}{
		"the kind of owners":                {"widgets.example.com", cause(v1beta1.HeldInferred), true, false},
		"a status that names no kind":       {"widgets.example.com", v1beta1.HeldCollectionStatus{Since: &since}, true, false},
		"deletions that were asked for":     {"requested.widgets.example.com", cause(v1beta1.HeldForRequest), false, true},
		"an object that Weir did not write": {"widgets.example.com", v1beta1.HeldCollectionStatus{}, false, false},
		"a name that is none of a kind":     {"made-by-hand", v1beta1.HeldCollectionStatus{Since: &since}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := New(Options{Limits: DefaultLimits, Registry: prometheus.NewRegistry(), Log: logr.Discard()})
			k := keeper{Brake: b}
			h := v1beta1.HeldCollection{ObjectMeta: metav1.ObjectMeta{Name: c.held}, Status: c.status}
			held := k.resume([]v1beta1.HeldCollection{h})
			if is := b.ledger.holds(widgets) != nil; is != c.inferred {
				t.Errorf("owners of the kind are held: %t", is)
			}
			if is := !b.since[widgets].IsZero(); is != c.requested {
				t.Errorf("deletions of the kind are held: %t", is)
			}
			if held == nil || b.unsure {
				t.Error("it is not known what is held")
			}
		})
	}
}

// TestAProcessThatEndsSaysNothing: its last request is cut off, which is no failure.
func TestAProcessThatEndsSaysNothing(t *testing.T) {
	var said []string
	log := funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{})
	client, err := dynamic.NewForConfig(apitest.New().Config())
	if err != nil {
		t.Fatal(err)
	}
	b := New(Options{Store: follow.NewStore(), Client: client, Registry: prometheus.NewRegistry(), Log: log})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.Begin()
	b.Run(ctx, func(types.UID) {}, func(types.UID) {})
	if len(said) > 0 {
		t.Errorf("it said %q", said)
	}
}
