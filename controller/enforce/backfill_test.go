package enforce

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies/finalizers"
	"github.com/weir-dev/weir/policies/live"
)

func settlePolicies(*live.State) {
	for range 3 {
		<-time.After(100 * time.Millisecond)
		synctest.Wait()
	}
}

// filler is a back-fill over ConfigMaps and Secrets. The graph is told what carries the finalizer.
func filler(t *testing.T, api *apitest.Server, state *live.State, carrying ...graph.Object) *backFill {
	t.Helper()
	s := follow.NewStore()
	events := []graph.Event{graph.Serving{Resources: []graph.Resource{
		{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true, Deletable: true, Listable: true},
		{Resource: "secrets", Kind: "Secret", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true, Deletable: true, Listable: true},
	}}}
	for _, k := range []schema.GroupResource{fixture.ConfigMaps, fixture.Secrets} {
		events = append(events, graph.ListBegins{Kind: k}, graph.ListEnds{Kind: k})
	}
	for i := range carrying {
		events = append(events, graph.Observed{Object: &carrying[i]})
	}
	s.Apply(events...)
	lister, err := finalizers.NewLister(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	writer, err := finalizers.New(api.Config(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	req, err := request.New(api.Config(), client, request.NewLimiter(request.DefaultConcurrency), &follow.History{}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return newBackFill(s, lister, writer, req, state, &board{}, testEnforcementMetrics(t), logr.Discard())
}

// whole makes a pass that looks at everything.
func whole(ctx context.Context, b *backFill) error {
	clear(b.looks)
	if f := b.pass(ctx); f != nil {
		return errors.Join(f.errs...)
	}
	return nil
}

// held is how many objects are to carry the finalizer for a policy, and how many do.
type held struct{ wanted, carrying int64 }

type holdings struct {
	of   map[string]held // by policy; without those for which none is to
	done bool
	news <-chan struct{}
}

// stateOfFill is what back-fill says of itself.
func stateOfFill(b *backFill) holdings {
	now, news := b.board.read()
	out := holdings{of: map[string]held{}, done: now.counted.done, news: news}
	for key, t := range now.counted.tallies {
		if t.wanted > 0 {
			out.of[key.Name] = held{t.wanted, t.carrying}
		}
	}
	return out
}

const (
	withFinalizer = ", finalizers: [weir.dev/propagation]"
	kept          = ", labels: {kept: 'yes'}"
)

// keptOnly is a policy about ConfigMaps with a label.
const keptOnly = "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {match: {resources: [{apiGroups: [''], resources: [configmaps]}], objectSelector: {matchLabels: {kept: 'yes'}}}, propagation: {default: Orphan}}}"

func finalizersOf(api *apitest.Server, key string) string {
	o := api.Get(key)
	if o == nil {
		return "gone"
	}
	return fmt.Sprint(finalizers.MetaOf(o).Finalizers)
}

func TestBackFillBringsWhatExistsInLine(t *testing.T) {
	const weirs, none = "[weir.dev/propagation]", "[]"
	for name, c := range map[string]struct {
		policies []string
		want     map[string]string
		tallies  map[string]held
	}{
		"adds it to what matches, removes it from the rest": {[]string{keptOnly},
			map[string]string{"configmaps/shop/matches": weirs, "configmaps/shop/plain": none, "configmaps/shop/stale": none, "configmaps/shop/right": weirs, "configmaps/shop/going": "[a]", "configmaps/shop/ending": weirs, "secrets/shop/other": none},
			map[string]held{"p": {2, 2}}},
		"removes it from all without policies": {nil,
			map[string]string{"configmaps/shop/matches": none, "configmaps/shop/plain": none, "configmaps/shop/stale": none, "configmaps/shop/right": none, "configmaps/shop/going": "[a]", "configmaps/shop/ending": weirs, "secrets/shop/other": none},
			map[string]held{}},
		// Without the finalizer a deletion would go another way than the policy says, once it is
		// fixed.
		"keeps what a broken policy may want": {[]string{strings.Replace(keptOnly, "propagation:", "priority: 9999999, propagation:", 1)},
			map[string]string{"configmaps/shop/matches": none, "configmaps/shop/stale": none, "configmaps/shop/right": weirs, "secrets/shop/other": none},
			map[string]held{}},
		"keeps what a policy cannot be judged about": {[]string{strings.Replace(keptOnly, "objectSelector: {matchLabels: {kept: 'yes'}}", `matchConditions: [{name: c, expression: "oldObject.data.x == 'y'"}]`, 1)},
			map[string]string{"configmaps/shop/matches": none, "configmaps/shop/stale": weirs, "secrets/shop/other": none},
			map[string]held{}},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New()
			api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
			fixture.PutConfigMap(api, "matches", kept)
			fixture.PutConfigMap(api, "plain", "")
			fixture.PutConfigMap(api, "stale", withFinalizer)
			fixture.PutConfigMap(api, "right", kept+withFinalizer)
			fixture.PutConfigMap(api, "going", kept+", finalizers: [a], deletionTimestamp: '2000-01-01T00:00:00Z'")
			// Its deletion goes as policies say, and the finalizer comes off when that is done.
			fixture.PutConfigMap(api, "ending", withFinalizer+", deletionTimestamp: '2000-01-01T00:00:00Z'")
			api.Put("secrets", "{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: shop"+withFinalizer+"}}")
			for _, p := range c.policies {
				api.Put("deletionpolicies", p)
			}
			inForce(t, api, func(t *testing.T, state *live.State) {
				var carrying []graph.Object
				for _, at := range []struct {
					kind schema.GroupResource
					name string
				}{{fixture.ConfigMaps, "stale"}, {fixture.ConfigMaps, "right"}, {fixture.Secrets, "other"}} {
					m := finalizers.MetaOf(api.Get(at.kind.Resource + "/shop/" + at.name))
					carrying = append(carrying, graph.Object{Kind: at.kind, UID: m.UID, Namespace: "shop", Name: at.name, ResourceVersion: m.ResourceVersion, Finalizers: m.Finalizers})
				}
				b := filler(t, api, state, carrying...)
				if err := whole(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				for key, want := range c.want {
					if got := finalizersOf(api, key); got != want {
						t.Errorf("%s has %s, want %s", key, got, want)
					}
				}
				now := stateOfFill(b)
				if diff := cmp.Diff(c.tallies, now.of, cmp.AllowUnexported(held{})); diff != "" || !now.done {
					t.Errorf("done=%t, tallies (-want +got):\n%s", now.done, diff)
				}
				api.Requests()
				if err := whole(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				for _, r := range api.Requests() {
					if r.Method == "PATCH" && strings.Contains(r.Body, "weir.dev/propagation") {
						t.Errorf("a second pass adds it again: %s", r)
					}
				}
			})
		})
	}
}

// Of very many objects those are read that a policy may be about, and what carries the finalizer
// though none is.
func TestBackFillReadsWhatPoliciesMayBeAbout(t *testing.T) {
	const all, selected = 4000, 600
	const want = 2 // pages
	for _, unselected := range []int{0, 3, 51} {
		t.Run(fmt.Sprint(unselected, " unselected"), func(t *testing.T) {
			api := apitest.New()
			api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
			var carrying []graph.Object
			for i := range all {
				name, labelled := fmt.Sprintf("c%05d", i), ""
				switch {
				case i < selected:
					labelled = kept + withFinalizer
				case i < selected+unselected:
					labelled = withFinalizer
				}
				fixture.PutConfigMap(api, name, labelled)
				if m := finalizers.MetaOf(api.Get("configmaps/shop/" + name)); len(m.Finalizers) > 0 {
					carrying = append(carrying, graph.Object{Kind: fixture.ConfigMaps, UID: m.UID, Namespace: "shop", Name: name, ResourceVersion: m.ResourceVersion, Finalizers: m.Finalizers})
				}
			}
			api.Put("deletionpolicies", keptOnly)
			inForce(t, api, func(t *testing.T, state *live.State) {
				var reads atomic.Int64
				api.Intercept(func(r apitest.Request) *apitest.Reply {
					if r.Method == "GET" && strings.Contains(r.Path, "/configmaps") {
						reads.Add(1)
					}
					return nil
				})
				b := filler(t, api, state, carrying...)
				if err := whole(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				if reads.Load() != int64(want) {
					t.Errorf("%d requests, want %d", reads.Load(), want)
				}
				if now := stateOfFill(b); now.of["p"] != (held{selected, selected}) {
					t.Errorf("%v, want %d of %[2]d", now.of, selected)
				}
				for i := selected; i < selected+unselected; i++ {
					if got := finalizersOf(api, fmt.Sprintf("configmaps/shop/c%05d", i)); got != "[]" {
						t.Errorf("c%05d has %s, and no policy is about it", i, got)
					}
				}
			})
		})
	}
}

func TestBackFillThatFailsIsNotDone(t *testing.T) {
	api := apitest.New()
	fixture.PutConfigMap(api, "a", kept)
	fixture.PutConfigMap(api, "b", kept)
	api.Put("deletionpolicies", keptOnly)
	inForce(t, api, func(t *testing.T, state *live.State) {
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			if r.Method == "PATCH" && strings.HasSuffix(r.Path, "/a") {
				return apitest.Refuse(403, "Forbidden", "no")
			}
			return nil
		})
		b := filler(t, api, state)
		if err := whole(t.Context(), b); err == nil || err.Error() != "change the finalizers of configmaps shop/a: no" {
			t.Errorf("error %v", err)
		}
		if now := stateOfFill(b); now.done || now.of["p"] != (held{2, 1}) {
			t.Errorf("done=%t, %v; want 1 of 2 with the finalizer", now.done, now.of)
		}
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			if r.Path == "/api/v1/configmaps" {
				return apitest.Refuse(403, "Forbidden", "may not list")
			}
			return nil
		})
		if err := whole(t.Context(), b); err == nil || err.Error() != "list configmaps: may not list" {
			t.Errorf("error %v", err)
		}
	})
}

// What a policy is about keeps the finalizer while its kind cannot be listed: that says nothing
// about what is wanted.
func TestBackFillTakesNothingOffAKindThatIsNotServedNow(t *testing.T) {
	api := apitest.New()
	api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	fixture.PutConfigMap(api, "right", kept+withFinalizer)
	api.Put("deletionpolicies", keptOnly)
	inForce(t, api, func(t *testing.T, state *live.State) {
		m := finalizers.MetaOf(api.Get("configmaps/shop/right"))
		b := filler(t, api, state, graph.Object{Kind: fixture.ConfigMaps, UID: m.UID, Namespace: "shop", Name: "right", ResourceVersion: m.ResourceVersion, Finalizers: m.Finalizers})
		b.store.Apply(graph.Serving{Resources: []graph.Resource{{Resource: "secrets", Kind: "Secret", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true, Deletable: true, Listable: true}}})
		if err := whole(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if got := finalizersOf(api, "configmaps/shop/right"); got != "[weir.dev/propagation]" {
			t.Errorf("it has %s", got)
		}
	})
}

// Whoever changes an object has it judged, and the finalizer may be wanted by then.
func TestBackFillTakesNothingOffWhatChangesMeanwhile(t *testing.T) {
	api := apitest.New()
	api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	fixture.PutConfigMap(api, "one", withFinalizer)
	api.Put("deletionpolicies", keptOnly)
	inForce(t, api, func(t *testing.T, state *live.State) {
		m := finalizers.MetaOf(api.Get("configmaps/shop/one"))
		b := filler(t, api, state, graph.Object{Kind: fixture.ConfigMaps, UID: m.UID, Namespace: "shop", Name: "one", ResourceVersion: m.ResourceVersion, Finalizers: m.Finalizers})
		changed := false
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			if r.Method == "PATCH" && !changed {
				changed = true
				fixture.PutConfigMap(api, "one", kept+withFinalizer)
			}
			return nil
		})
		if err := whole(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if got := finalizersOf(api, "configmaps/shop/one"); !changed || got != "[weir.dev/propagation]" {
			t.Errorf("changed meanwhile: %t; it has %s", changed, got)
		}
	})
}

// A change of policies ends a pass, and another begins with what is wanted now.
func TestBackFillStartsOverWhenPoliciesChange(t *testing.T) {
	const n = 50 // at one a second: eight at once take eight each
	api := apitest.New()
	api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a}}}")
	for i := range n {
		fixture.PutConfigMap(api, fmt.Sprintf("c%03d", i), kept)
	}
	api.Put("secrets", "{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: shop}}")
	api.Put("deletionpolicies", keptOnly)
	inForce(t, api, func(t *testing.T, state *live.State) {
		adding := make(chan struct{}, n)
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			if r.Method == "PATCH" && strings.HasPrefix(r.Path, "/api/v1/namespaces/shop/configmaps/") {
				adding <- struct{}{}
				<-time.After(8 * time.Second)
			}
			return nil
		})
		b := filler(t, api, state)
		// awaitPass waits for the end of the pass under way, and for that of another if changed has
		// not fired yet.
		awaitPass := func(changed <-chan struct{}) map[string]held {
			<-changed
			for {
				now := stateOfFill(b)
				if now.done {
					return now.of
				}
				<-now.news
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		began := time.Now()
		changed := stateOfFill(b).news
		go func() {
			b.run(ctx)
			close(ended)
		}()
		for range 3 {
			<-adding
		}
		api.Put("deletionpolicies", strings.ReplaceAll(strings.Replace(keptOnly, "objectSelector: {matchLabels: {kept: 'yes'}}", "namespaceSelector: {matchLabels: {team: a}}", 1), "configmaps", "secrets"))
		tallies := awaitPass(changed)
		if took := time.Since(began); took > n*time.Second/2 {
			t.Errorf("done after %s: the pass over the old policy was not cut short", took)
		}
		if got := finalizersOf(api, "secrets/shop/other"); got != "[weir.dev/propagation]" || tallies["p"] != (held{1, 1}) {
			t.Errorf("what the new policy is about has %s, %v", got, tallies)
		}
		// It looks again by itself, too.
		rested := time.Now()
		changed = stateOfFill(b).news
		awaitPass(changed)
		if took := time.Since(rested); took < backFillEvery || took > backFillEvery+time.Minute {
			t.Errorf("looked again after %s, want %s", took, backFillEvery)
		}
		cancel()
		<-ended
	})
}
