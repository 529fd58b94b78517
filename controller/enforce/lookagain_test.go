package enforce

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// A policy that changes has those kinds looked at again that it is about.
func TestBackFillLooksAgainOnlyAtWhatAPolicyIsAbout(t *testing.T) {
	api := apitest.New()
	api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	for i := range 3 {
		fixture.PutConfigMap(api, fmt.Sprint("c", i), kept)
	}
	api.Put("deletionpolicies", keptOnly)
	api.Put("deletionpolicies", delpol("secrets", "secrets", "propagation: {default: Foreground}"))
	inForce(t, api, func(t *testing.T, state *live.State) {
		var mu sync.Mutex
		var lists []string
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			mu.Lock()
			defer mu.Unlock()
			if kind, core := strings.CutPrefix(r.Path, "/api/v1/"); core && r.Method == "GET" && kind != "namespaces" {
				lists = append(lists, kind)
			}
			return nil
		})
		b := filler(t, api, state)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.run(ctx)
		}()
		synctest.Wait()
		for _, step := range []struct {
			what string
			do   func()
			want []string
		}{
			{"at the start", func() {}, []string{"configmaps", "secrets"}},
			{"a policy about secrets", func() {
				api.Put("deletionpolicies", delpol("secrets", "secrets", "propagation: {default: Orphan}"))
			}, []string{"secrets"}},
			{"a policy about something else", func() {
				api.Put("deletionpolicies", strings.Replace(delpol("services", "services", "propagation: {default: Orphan}"), "[services]}]", "[services]}], namespaceSelector: {matchLabels: {a: b}}", 1))
			}, nil},
			{"a policy about both", func() {
				api.Put("deletionpolicies", delpol("both", "secrets, configmaps", "propagation: {default: Orphan}"))
			}, []string{"configmaps", "secrets"}},
			{"it goes", func() { api.Remove("deletionpolicies.weir.dev/both") }, []string{"configmaps", "secrets"}},
			{"time", func() { <-time.After(backFillEvery) }, nil},
			{"time, and a Secret that changed", func() {
				b.store.Apply(graph.Observed{Object: &graph.Object{Kind: fixture.Secrets, UID: "s", Namespace: "shop", Name: "s", ResourceVersion: "7"}})
				<-time.After(backFillEvery)
			}, []string{"secrets"}},
			{"time, and a Secret that went", func() {
				b.store.Apply(graph.Gone{Kind: fixture.Secrets, UID: "s"})
				<-time.After(backFillEvery)
			}, []string{"secrets"}},
			{"time, and a Secret that came with the finalizer", func() {
				b.store.Apply(graph.Observed{Object: &graph.Object{Kind: fixture.Secrets, UID: "s", Namespace: "shop", Name: "s", ResourceVersion: "7",
					Finalizers: []string{v1beta1.Finalizer}}})
				<-time.After(backFillEvery)
			}, []string{"secrets"}},
			{"time, and one that came without it", func() {
				b.store.Apply(graph.Observed{Object: &graph.Object{Kind: fixture.Secrets, UID: "t", Namespace: "shop", Name: "t", ResourceVersion: "7"}})
				<-time.After(backFillEvery)
			}, []string{"secrets"}},
			{"time, and neither is there: by now all are looked at again", func() {
				b.store.Apply(graph.Gone{Kind: fixture.Secrets, UID: "s"}, graph.Gone{Kind: fixture.Secrets, UID: "t"})
				<-time.After(backFillEvery)
			}, []string{"configmaps", "secrets"}},
			{"a change, and then a policy about something else", func() {
				b.store.Apply(graph.Observed{Object: &graph.Object{Kind: fixture.Secrets, UID: "s", Namespace: "shop", Name: "s", ResourceVersion: "8"}})
				api.Remove("deletionpolicies.weir.dev/services")
			}, nil},
			{"which is seen to when its time has come", func() { <-time.After(backFillEvery) }, []string{"secrets"}},
			{"time, and a kind that cannot be followed", func() {
				b.store.Apply(graph.FellBehind{Kind: fixture.ConfigMaps, Reason: "conversion fails"})
				<-time.After(backFillEvery)
				b.store.Apply(graph.ListBegins{Kind: fixture.ConfigMaps})
				b.store.Apply(graph.ListEnds{Kind: fixture.ConfigMaps})
			}, []string{"configmaps"}},
			{"much time", func() { <-time.After(backFillAll) }, []string{"configmaps", "secrets"}},
		} {
			step.do()
			settlePolicies(state)
			mu.Lock()
			slices.Sort(lists)
			if diff := cmp.Diff(step.want, lists); diff != "" {
				t.Errorf("%s: kinds listed (-want +have):\n%s", step.what, diff)
			}
			lists = nil
			mu.Unlock()
			if now := stateOfFill(b); !now.done || now.of["p"].wanted+now.of["both"].wanted != 3 {
				t.Errorf("%s: done %t, %v", step.what, now.done, now.of)
			}
		}
		cancel()
		<-done
	})
}
