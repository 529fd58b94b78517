package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

const (
	limited      = `{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: few}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, protection: {maxDependents: 5}}}`
	aLimitedWeb  = `{operation: DELETE, resource: {group: apps, version: v1, resource: deployments}, kind: {group: apps, version: v1, kind: Deployment}, namespace: shop, name: web, userInfo: {username: alice}, oldObject: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: uid-web}}}`
	whatWebTells = "10 pods (web-1, web-2, web-3, …); 1 replicasets.apps (web)"
)

// Names are told to who may list them; how many there are, to all.
func TestNamesAreToldToWhoMayListThem(t *testing.T) {
	for discloses, granted := range map[string][]string{
		whatWebTells: {"alice list pods", "alice list replicasets"},
		"10 pods (web-1, web-2, web-3, …); 1 replicasets.apps (DeletionPolicy": {"alice list pods"},
		"10 pods; 1 replicasets.apps (DeletionPolicy":                          {"alice get pods", "bob list pods"},
	} {
		withFixture(t, func(b *fixture) {
			b.policies(limited)
			b.grant(granted...)
			for range 2 {
				if code, body := b.ask("delete", aLimitedWeb); code != 200 || !strings.Contains(string(body), `"allowed":false`) ||
					!strings.Contains(string(body), discloses) {
					b.Errorf("%v: %d %s\nwant %s", granted, code, body, discloses)
				}
			}
			if asked := b.asked(); len(asked) != 2 {
				b.Errorf("asked %d times, want once for each kind: %v", len(asked), asked)
			}
		})
	}
}

// A refusal is one, and comes in time, be it that no one says what may be told.
func TestWhatMayBeToldDecidesNothing(t *testing.T) {
	for name, reply := range map[string]func() *apitest.Reply{
		"the API server fails": func() *apitest.Reply { return apitest.Refuse(500, "InternalError", "etcd is away") },
		"Weir may not ask":     func() *apitest.Reply { return apitest.Refuse(403, "Forbidden", "weir may not") },
		"it takes its time": func() *apitest.Reply {
			<-time.After(700 * time.Millisecond)
			return apitest.Refuse(500, "InternalError", "etcd is slow")
		},
	} {
		t.Run(name, func(t *testing.T) {
			withFixture(t, func(b *fixture) {
				b.policies(limited)
				b.grant("alice list pods", "alice list replicasets")
				b.api.Intercept(func(r apitest.Request) *apitest.Reply {
					if strings.HasSuffix(r.Path, "/subjectaccessreviews") {
						return reply()
					}
					return nil
				})
				began := time.Now()
				code, body := b.ask("delete", aLimitedWeb)
				if took := time.Since(began); code != 200 || took > 2*time.Second ||
					!strings.Contains(string(body), `"allowed":false`) ||
					!strings.Contains(string(body), "10 pods; 1 replicasets.apps (") {
					b.Errorf("%d after %s: %s", code, took, body)
				}
			})
		})
	}
}
