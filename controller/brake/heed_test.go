package brake

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// heeding is a process that heeds the HeldCollections of an API server.
type heeding struct {
	*testing.T
	*Brake
	api  *apitest.Server
	said []string
}

// heeded runs a test beside a process that heeds.
func heeded(t *testing.T, test func(h *heeding)) {
	synctest.Test(t, func(t *testing.T) {
		h := &heeding{T: t, api: apitest.New()}
		client, err := dynamic.NewForConfig(h.api.Config())
		if err != nil {
			t.Fatal(err)
		}
		log := funcr.New(func(_, args string) { h.said = append(h.said, args) }, funcr.Options{})
		h.Brake = New(Options{Limits: Limits{Most: 2, Objects: 2, Share: 1}, Beside: true, Store: follow.NewStore(), Client: client, Registry: prometheus.NewRegistry(), Log: log})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { h.Heed(ctx); close(ended) }()
		test(h)
		cancel()
		<-ended
	})
}

// pass lets time pass, and all be seen.
func (h *heeding) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// put writes a HeldCollection with a status.
func (h *heeding) put(name, status string) {
	h.api.Put("heldcollections", fmt.Sprintf("{apiVersion: weir.dev/v1beta1, kind: HeldCollection, metadata: {name: %s}, status: {%s}}", name, status))
}

func (h *heeding) refuse(code int) {
	h.api.Intercept(func(r apitest.Request) *apitest.Reply {
		if r.Method == http.MethodGet {
			return apitest.Refuse(code, "", "not now")
		}
		return nil
	})
}

// allowed asks about a pod until the answer is not to ask later.
func (h *heeding) allowed(uid string, by graph.Inference) bool {
	a := graph.Action{Verb: graph.Delete, Object: graph.Ref{Kind: schema.GroupResource{Resource: "pods"}, UID: types.UID(uid)}, Inferred: by}
	for {
		yes, again := h.Allows(a)
		if again == 0 {
			return yes
		}
		<-time.After(again)
	}
}

var (
	ofWidgets = graph.Inference{Conclusion: graph.OwnerNotFound, Owners: schema.GroupResource{Group: "example.com", Resource: "widgets"}}
	ofGadgets = graph.Inference{Conclusion: graph.OwnerNotFound, Owners: schema.GroupResource{Group: "example.com", Resource: "gadgets"}}
)

// TestAProcessHeedsWhatTheLeaderWrites: and no more than that.
func TestAProcessHeedsWhatTheLeaderWrites(t *testing.T) {
	const since = "since: '2000-01-01T00:00:00Z'"
	for name, c := range map[string]struct {
		held, status string
		widgets      bool // those are held
	}{
		"the kind of owners":                      {"widgets.example.com", since, true},
		"another kind":                            {"widgets.example.org", since, false},
		"deletions that were asked for":           {"requested.widgets.example.com", since + ", cause: {type: Requested, group: example.com, resource: widgets}", false},
		"an object that Weir did not write":       {"widgets.example.com", "", false},
		"a name that is none of a kind":           {"made-by-hand", since, false},
		"one with a decision that is under way":   {"widgets.example.com", since + ", message: Of what a person has decided to delete", true},
		"since a moment that has not come by now": {"widgets.example.com", "since: '2099-01-01T00:00:00Z'", true},
	} {
		t.Run(name, func(t *testing.T) {
			heeded(t, func(h *heeding) {
				h.put(c.held, c.status)
				h.pass(lookEvery)
				if held := !h.allowed("1", ofWidgets); held != c.widgets {
					h.Errorf("owners of the kind: held is %t", held)
				}
				if !h.allowed("2", ofGadgets) {
					h.Error("owners of another kind are held")
				}
				h.api.Remove("heldcollections.weir.dev/" + c.held)
				h.pass(lookEvery)
				if held := !h.allowed("5", ofWidgets); held != c.widgets { // who deletes one decides nothing: the leader makes it again
					h.Errorf("when it has gone for a moment, held is %t", held)
				}
				h.pass(missed)
				if !h.allowed("3", ofWidgets) {
					h.Error("held, although the leader does not any more")
				}
			})
		})
	}
}

// TestNothingGoesBeforeAProcessHasReadWhatIsHeld: a webhook that is started knows its cluster before
// the API server has told it what the leader holds.
func TestNothingGoesBeforeAProcessHasReadWhatIsHeld(t *testing.T) {
	heeded(t, func(h *heeding) {
		h.refuse(500)
		h.Begin()
		h.put("widgets.example.com", "since: '2000-01-01T00:00:00Z'")
		pod := graph.Ref{Kind: schema.GroupResource{Resource: "pods"}, UID: "1"}
		for range 10 { // the first answer is to ask later, anyway
			h.pass(2 * Pause)
			if yes, again := h.Allows(graph.Action{Verb: graph.Delete, Object: pod, Inferred: ofWidgets}); yes || again == 0 {
				h.Errorf("it goes: %t; it is to be asked again after %s", yes, again)
			}
		}
		h.api.Intercept(func(apitest.Request) *apitest.Reply { return nil })
		h.pass(lookEvery)
		if h.allowed("1", ofWidgets) {
			h.Error("it is not held")
		}
		if !h.allowed("2", ofGadgets) {
			h.Error("owners of another kind are held")
		}
	})
}

// TestWhatIsHeldStaysSoWhileItCannotBeRead: an API server that does not answer ends no hold, and is
// spoken of once a minute.
func TestWhatIsHeldStaysSoWhileItCannotBeRead(t *testing.T) {
	for _, code := range []int{403, 404, 500} {
		heeded(t, func(h *heeding) {
			h.put("widgets.example.com", "since: '2000-01-01T00:00:00Z'")
			h.pass(lookEvery)
			h.refuse(code)
			h.api.Remove("heldcollections.weir.dev/widgets.example.com")
			h.pass(10*time.Minute - time.Second)
			if h.allowed("1", ofWidgets) {
				h.Errorf("%d ends a hold", code)
			}
			failed := slices.DeleteFunc(slices.Clone(h.said), func(s string) bool { return !strings.Contains(s, "what was held before stays held") })
			if len(failed) != 10 {
				h.Errorf("%d: said %d times in ten minutes", code, len(failed))
			}
			h.api.Intercept(nil)
			h.pass(lookEvery + missed)
			if !h.allowed("1", ofWidgets) {
				h.Errorf("%d: held for good", code)
			}
		})
	}
}

// TestAProcessThatHeedsForgetsWhatIsLongAgo: a webhook runs for months, and references may name
// kinds without end.
func TestAProcessThatHeedsForgetsWhatIsLongAgo(t *testing.T) {
	heeded(t, func(h *heeding) {
		h.allowed("1", ofWidgets)
		h.allowed("2", ofGadgets)
		h.pass(3 * time.Hour)
		h.mu.Lock()
		defer h.mu.Unlock()
		if n := len(h.ledger.kinds); n > 0 {
			h.Errorf("%d kinds are kept", n)
		}
	})
}

// TestAProcessThatEndsSaysNothing: its last request is cut off, which is no failure.
func TestAProcessThatEndsSaysNothing(t *testing.T) {
	b := New(Options{Store: follow.NewStore(), Registry: prometheus.NewRegistry(), Log: logr.Discard()})
	var said []string
	b.Log = funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{})
	client, err := dynamic.NewForConfig(apitest.New().Config())
	if err != nil {
		t.Fatal(err)
	}
	b.Client = client
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.Heed(ctx)
	b.Begin()
	b.Run(ctx, func(types.UID) {}, func(types.UID) {})
	if len(said) > 0 {
		t.Errorf("it said %q", said)
	}
}
