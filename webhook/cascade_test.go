package webhook

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
)

const aWeb = `{operation: DELETE, resource: {group: apps, version: v1, resource: deployments}, kind: {group: apps, version: v1, kind: Deployment}, namespace: shop, name: web, userInfo: {username: alice}, oldObject: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: uid-web}}}`

// aShop is the DELETE of the namespace in which that is.
const aShop = `{operation: DELETE, resource: {version: v1, resource: namespaces}, kind: {version: v1, kind: Namespace}, namespace: shop, name: shop, userInfo: {username: alice}, oldObject: {apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: uid-shop}}}`

// cascading are facts by which so many ConfigMaps go with whatever is deleted.
func cascading(n int) policies.Facts {
	f := someFacts()
	one := policies.Caught{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}
	f.Catch = func(types.UID, func(schema.GroupResource) bool, func(schema.GroupResource) bool) policies.Catch {
		c := policies.Catch{Complete: true}
		for i := range n {
			o := one
			o.Namespace, o.Name, o.UID = "shop", fmt.Sprintf("c%05d", i), types.UID(fmt.Sprintf("uid-c%05d", i))
			c.Objects = append(c.Objects, o)
		}
		return c
	}
	f.Holds = func(policies.Search, func(schema.GroupResource) bool) ([]policies.Caught, bool) {
		return []policies.Caught{one}, true
	}
	return f
}

// What is read to find protected objects is bounded. What is too much is let through, with a word,
// where the objects are judged by themselves.
func TestFewObjectsAreReadForACascade(t *testing.T) {
	const unsure = "did not look at all dependents of"
	readMetadata, readFull := policies.BoundsOf(false), policies.BoundsOf(true)
	for name, c := range map[string]struct {
		objects, protected int // of so many, the place of one that is protected; -1: none is
		condition          string
		says               string // empty: it is allowed
		most               int    // requests
	}{
		"few":                            {readMetadata.Single, -1, "true", "", readMetadata.Single},
		"few, of which one is protected": {readMetadata.Single, 3, "true", "1 configmaps", readMetadata.Single},
		"many":                           {1999, -1, "true", "", 40},
		"many, the last is protected":    {1999, 1998, "true", "1 configmaps", 40},
		"too many":                       {readMetadata.Most() + 1, -1, "true", unsure, readMetadata.Pages},
		"too many, one of the first":     {readMetadata.Most() + 1, 9, "true", "1 configmaps", readMetadata.Pages},
		"few, and all of them":           {readFull.Single, -1, "has(oldObject.data)", "", readFull.Single},
		"many, and all of them":          {300, 299, "!has(oldObject.data)", "1 configmaps", 16},
		"too many, and all of them":      {500, -1, "!has(oldObject.data)", unsure, readFull.Pages},
	} {
		t.Run(name, func(t *testing.T) {
			withFixtureOf(t, apitest.New(), cascading(c.objects), func(b *fixture) {
				b.policies(`{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: keep}, spec: {match: {resources: [{apiGroups: [""], resources: [configmaps]}], objectSelector: {matchLabels: {keep: "yes"}}, matchConditions: [{name: c, expression: "` + fmt.Sprintf("%s && oldObject.metadata.name == 'c%05d'", c.condition, c.protected) + `"}]}, protection: {confirmation: Required}}}`)
				for i := range c.objects {
					b.api.Put("configmaps", fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c%05d", "namespace": "shop", "labels": {"keep": "yes"}}}`, i))
				}
				// does not go
				b.api.Put("configmaps",
					`{apiVersion: v1, kind: ConfigMap, metadata: {name: another, namespace: shop, labels: {keep: "yes"}}}`)
				var requests atomic.Int32
				b.api.Intercept(func(r apitest.Request) *apitest.Reply {
					if strings.Contains(r.Path, "/configmaps") {
						requests.Add(1)
						if strings.HasSuffix(r.Path, "/configmaps") && !strings.Contains(r.Query, "labelSelector=keep+in+%28yes%29") {
							t.Errorf("listed without the selector of the policy: %s", r.Query)
						}
					}
					return b.review(r)
				})
				code, body := b.ask("cascade", aWeb)
				if code != 200 || strings.Contains(string(body), `"allowed":true`) != (c.says == "" || c.says == unsure) ||
					!strings.Contains(string(body), c.says) || int(requests.Load()) > c.most {
					b.Errorf("%d after %d requests, at most %d: %.500s", code, requests.Load(), c.most, body)
				}
			})
		})
	}
}

// An answer comes in time, though the API server takes its own; a user could make it. Of a
// namespace it is a refusal.
func TestCascadeThatTakesLongEnds(t *testing.T) {
	for request, says := range map[string]string{aWeb: "did not look at all dependents of", aShop: "it holds too many configmaps to check"} {
		withFixtureOf(t, apitest.New(), cascading(300), func(b *fixture) {
			b.policies(`{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: keep}, spec: {match: {resources: [{apiGroups: [""], resources: [configmaps]}]}, protection: {confirmation: Required}}}`)
			b.api.Intercept(func(r apitest.Request) *apitest.Reply {
				if strings.HasSuffix(r.Path, "/configmaps") {
					<-time.After(2 * lookupTimeout)
				}
				return nil
			})
			if code, body := b.ask("cascade", request); code != 200 ||
				strings.Contains(string(body), `"allowed":true`) != (request == aWeb) || !strings.Contains(string(body), says) {
				b.Errorf("%d %s", code, body)
			}
		})
	}
}

// TestFewListsAreReadAtOnce, whatever the number of requests: whoever made the objects decides how
// large they are. Who waits too long for a turn is refused.
func TestFewListsAreReadAtOnce(t *testing.T) {
	const requests = 6
	for condition, want := range map[string]int32{"true": mostLists, "has(oldObject.data)": 1} {
		withFixtureOf(t, apitest.New(), cascading(300), func(b *fixture) {
			b.policies(`{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: keep}, spec: {match: {resources: [{apiGroups: [""], resources: [configmaps]}], matchConditions: [{name: c, expression: "` + condition + `"}]}, protection: {confirmation: Required}}}`)
			var now, most atomic.Int32
			b.api.Intercept(func(r apitest.Request) *apitest.Reply {
				if strings.HasSuffix(r.Path, "/configmaps") {
					n := now.Add(1)
					for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
					}
					<-time.After(2 * lookupTimeout / 3) // two after each other take longer than there is time
					now.Add(-1)
				}
				return b.review(r)
			})
			bodies := make([]string, requests)
			var all sync.WaitGroup
			for i := range bodies {
				all.Go(func() {
					_, body := b.ask("cascade", aShop)
					bodies[i] = string(body)
				})
			}
			all.Wait()
			refused := 0
			for _, body := range bodies {
				if strings.Contains(body, "it holds too many configmaps to check") {
					refused++
				}
			}
			if most.Load() != want || refused < requests-int(want) {
				b.Errorf("%s: %d lists at once, want %d; %d of %d refused", condition, most.Load(), want, refused, requests)
			}
		})
	}
}

// What the API server does not answer about a namespace is the failurePolicy's to decide.
func TestCascadeThatCannotBeReadIsTheFailurePolicys(t *testing.T) {
	for failure, want := range map[string]string{"Ignore": `"allowed":true`,
		"Fail": "configmaps that would be deleted cannot be read"} {
		for _, request := range []string{aWeb, aShop} {
			want := want
			withFixtureOf(t, apitest.New(), cascading(3), func(b *fixture) {
				b.policies(`{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: keep}, spec: {match: {resources: [{apiGroups: [""], resources: [configmaps]}]}, protection: {confirmation: Required}, failurePolicy: ` + failure + `}}`)
				b.api.Intercept(func(r apitest.Request) *apitest.Reply {
					if strings.Contains(r.Path, "/configmaps") {
						return apitest.Refuse(403, "Forbidden", "weir may not")
					}
					return nil
				})
				if request == aWeb {
					want = `"allowed":true` // each object is judged by itself
				}
				if code, body := b.ask("cascade", request); code != 200 || !strings.Contains(string(body), want) {
					b.Errorf("%s: %d %s", failure, code, body)
				}
			})
		}
	}
}
