package enforce

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

// The status of a policy says how fast back-fill is, and how long it will take where the graph
// knows how much there is.
func TestBackFillTellsItsRateAndWhatIsLeft(t *testing.T) {
	for policy, want := range map[string]string{
		delpol("p", "configmaps", "propagation: {default: Orphan}"): "11 a second, about 36s left",
		keptOnly: "11 a second", // the API server selects: it is not known how many
	} {
		api := apitest.New()
		for i := range 500 {
			fixture.PutConfigMap(api, fmt.Sprintf("c%03d", i), kept)
		}
		api.Put("deletionpolicies", policy)
		inForce(t, api, func(t *testing.T, state *live.State) {
			b := filler(t, api, state, 10)
			for i := range 500 {
				name := fmt.Sprintf("c%03d", i)
				b.store.Apply(graph.Observed{Object: &graph.Object{Kind: fixture.ConfigMaps, UID: fixture.UIDOf("configmaps/shop/" + name), Namespace: "shop", Name: name, ResourceVersion: "1"}})
			}
			_, changed := b.progress()
			done := make(chan error, 1)
			go func() { done <- b.newPass(nil).run(t.Context()) }()
			<-changed // a hundred are done
			now, changed := b.progress()
			c := backFilled(policies.Status{Ready: true}, now, 1)
			if now.tallies["p"].carrying != 100 || !strings.HasSuffix(c.Message, "status.stamped says how far: "+want) {
				t.Errorf("%v: %q, want %q", now.tallies, c.Message, want)
			}
			<-changed
			if err := <-done; err != nil {
				t.Error(err)
			}
			if now, _ := b.progress(); !now.done || now.speed.String() != "" {
				t.Errorf("at the end: %+v", now)
			}
		})
	}
}

// What stands still has no rate, and says why. When it goes on, the time in between does not count
// for long.
func TestBackFillThatStandsStillSaysSo(t *testing.T) {
	const n = 2000
	var answered atomic.Int64
	var well atomic.Bool
	api := apitest.New()
	for i := range n {
		fixture.PutConfigMap(api, fmt.Sprintf("c%03d", i), kept)
	}
	api.Put("deletionpolicies", keptOnly)
	api.Intercept(func(r apitest.Request) *apitest.Reply {
		if r.Method == "PATCH" && strings.Contains(r.Path, "/configmaps/") && answered.Add(1) > 150 && !well.Load() {
			return apitest.Refuse(429, "TooManyRequests", "busy")
		}
		return nil
	})
	inForce(t, api, func(t *testing.T, state *live.State) {
		b := filler(t, api, state, 20)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.newPass(nil).run(ctx) }()
		<-time.After(4 * showAfter)
		if now, _ := b.progress(); now.speed.String() != "stands still; requests about configmaps are answered 429" {
			t.Errorf("after 7 s of work and 33 s of none: %q", now.speed)
		}
		well.Store(true)
		<-time.After(3 * showAfter)
		if now, _ := b.progress(); now.speed.String() != "20 a second" {
			t.Errorf("when it goes on: %q", now.speed)
		}
		cancel()
		if err := <-done; err == nil {
			t.Error("a pass that was ended says that it is done")
		}
	})
}

// While a pass looks at what carries the finalizer already, for however long, the status stays as
// it was.
func TestBackFillThatOnlyLooksTellsNothing(t *testing.T) {
	api := apitest.New()
	for i := range 600 { // more than a page
		fixture.PutConfigMap(api, fmt.Sprintf("c%03d", i), kept+withFinalizer)
	}
	api.Put("deletionpolicies", keptOnly)
	var lists atomic.Int64
	api.Intercept(func(r apitest.Request) *apitest.Reply {
		if r.Method == "GET" && r.Path == "/api/v1/configmaps" && lists.Add(1) == 2 {
			<-time.After(3 * showAfter)
		}
		return nil
	})
	inForce(t, api, func(t *testing.T, state *live.State) {
		b := filler(t, api, state, 0)
		done := make(chan error, 1)
		go func() { done <- b.newPass(nil).run(t.Context()) }()
		<-time.After(2 * showAfter)
		if now, _ := b.progress(); now.done || len(now.tallies) > 0 {
			t.Errorf("it tells %+v", now)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if now, _ := b.progress(); !now.done || now.tallies["p"] != (tally{600, 600}) {
			t.Errorf("at the end it tells %+v", now)
		}
	})
}

func TestHeadwayInWords(t *testing.T) {
	for h, want := range map[headway]string{
		{}:                           "",
		{aSecond: 0.4, left: 5}:      "",
		{aSecond: 752.4}:             "752 a second",
		{still: true}:                "stands still",
		{failing: "x hangs"}:         "x hangs",
		{aSecond: 7, failing: "x"}:   "7 a second; x",
		{aSecond: 3, left: 90e9 + 1}: "3 a second, about 1m30s left",
	} {
		if got := h.String(); got != want {
			t.Errorf("%+v: %q, want %q", h, got, want)
		}
	}
}
