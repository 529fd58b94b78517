package webhook

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
)

// owned is the CREATE of a ConfigMap with these owners.
func owned(owners ...string) string {
	return `{operation: CREATE, resource: {version: v1, resource: configmaps}, kind: {version: v1, kind: ConfigMap}, namespace: shop, name: new, userInfo: {username: alice}, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: new, namespace: shop, ownerReferences: [` +
		strings.Join(owners, ", ") + `]}}}`
}

func ownerNamed(name, uid string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, name: "%s", uid: %s}`, name, uid)
}

// The graph tells nothing of an owner that never was, nor of one that is very new: the API server
// does, in bounded numbers, and for no rule that does not depend on it.
func TestOwnersThatTheGraphDoesNotKnowAreRead(t *testing.T) {
	var many []string
	for i := range 100 {
		many = append(many, ownerNamed("web", fmt.Sprint("uid-", i)))
	}
	unknown := someFacts()
	unknown.Owner = func(ref policies.OwnerRef, _ string) policies.Owner {
		if ref.UID == "uid-gone" {
			return policies.Owner{Answer: policies.Absent}
		}
		return policies.Owner{}
	}
	for name, c := range map[string]struct {
		rules, review string
		failure       int  // the API server's answer about owners; 0: what is there
		refused       bool // because it does not exist
		reads         int
	}{
		"there":                {"dangling: Deny", owned(ownerNamed("web", "uid-web")), 0, false, 1},
		"never was":            {"dangling: Deny", owned(ownerNamed("none", "uid-none")), 0, true, 1},
		"another of that name": {"dangling: Deny", owned(ownerNamed("web", "uid-old")), 0, true, 1},
		"known to be gone":     {"dangling: Deny", owned(ownerNamed("web", "uid-gone")), 0, true, 0},
		"there, and one that is not": {"dangling: Deny", owned(ownerNamed("web", "uid-web"), ownerNamed("none", "uid-none")),
			0, true, 2},
		"no name of an object": {"dangling: Deny",
			owned(ownerNamed("../../../api/v1/namespaces/shop/secrets/x", "uid-x")), 0, true, 0},
		"no name, and one is there": {"dangling: Deny", owned(ownerNamed("web", "uid-web"), ownerNamed("../x", "uid-x")),
			0, true, 1},
		"may not be read": {"dangling: Deny", owned(ownerNamed("none", "uid-none")), http.StatusForbidden,
			false, 1},
		"nobody asks": {"mismatch: Deny", owned(ownerNamed("none", "uid-none")), 0, false, 0},
		"a kind that is not served": {"dangling: Deny", owned(`{apiVersion: apps/v1, kind: Gadget, name: x, uid: uid-x}`),
			0, false, 0},
		"too many":           {"dangling: Deny", owned(many...), 0, true, 64},
		"for a warning, too": {"dangling: Warn", owned(ownerNamed("none", "uid-none")), 0, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			withFixtureOf(t, apitest.New(), unknown, func(b *fixture) {
				b.policies(`{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: lint}, spec: {match: {resources: [{apiGroups: [""], resources: [configmaps]}]}, rules: {` + c.rules + `}}}`)
				b.api.Put("deployments",
					`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: uid-web}}`)
				var reads atomic.Int32
				b.api.Intercept(func(r apitest.Request) *apitest.Reply {
					if strings.Contains(r.Path, "/deployments/") {
						reads.Add(1)
						if c.failure != 0 {
							return &apitest.Reply{Code: c.failure}
						}
					}
					return b.review(r)
				})
				code, body := b.ask("owners", c.review)
				missing := strings.Contains(string(body), "does not exist: the garbage collector would delete")
				if code != 200 || strings.Contains(string(body), `"allowed":true`) == c.refused ||
					missing != (c.refused || strings.HasSuffix(c.rules, "Warn")) || int(reads.Load()) != c.reads {
					b.Errorf("%d after %d reads, want %d: %.500s", code, reads.Load(), c.reads, body)
				}
			})
		})
	}
}
