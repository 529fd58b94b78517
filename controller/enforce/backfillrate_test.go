package enforce

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/controller/fixture"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/apitest"
	"github.com/weir-dev/weir/policies/live"
)

// The status of a policy says how fast back-fill is, and how long it will take where the graph knows how much there is.
func TestBackFillTellsItsRateAndWhatIsLeft(t *testing.T) {
	for policy, want := range map[string]string{
		delpol("p", "configmaps", "propagation: {default: Orphan}"): "11 a second, about 36s left",
		keptOnly: "11 a second", // the API server selects: nobody knows how many
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
			c := backFilled(now, 1)
			if now.tallies["p"].stamped != 100 || !strings.HasSuffix(c.Message, "status.stamped says how far: "+want) {
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

func TestHeadwayInWords(t *testing.T) {
	for h, want := range map[headway]string{
		{}:                           "",
		{aSecond: 0.4, left: 5}:      "",
		{aSecond: 752.4}:             "752 a second",
		{aSecond: 3, left: 90e9 + 1}: "3 a second, about 1m30s left",
	} {
		if got := h.String(); got != want {
			t.Errorf("%+v: %q, want %q", h, got, want)
		}
	}
}
