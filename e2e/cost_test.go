package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// foregroundRequests are what a user has asked about objects, by verb, without the live reads of
// the owner that waits: at least one, and two a second for as long as the cascade took.
func foregroundRequests(w *fixture, user string, names []string) map[string]int {
	have := w.requests(user, names...)
	have["get"] += 0 // none is shown, too
	all := slices.DeleteFunc(w.audit(user), func(r request) bool { return !slices.Contains(names, r.Object.Name) })
	took := all[len(all)-1].Ended.Sub(all[0].Ended)
	if reads := have["get"]; reads > 0 && reads <= 5+int(2*took.Seconds()) {
		delete(have, "get")
	}
	return have
}

// TestEachObjectCostsOneRequest counts weir's requests about an owner and its 200
// dependents in the API server's audit log.
func TestEachObjectCostsOneRequest(t *testing.T) {
	t.Parallel()
	const n = 200
	for name, c := range map[string]struct {
		kind   string
		owner  string // how the dependents name it
		policy metav1.DeletionPropagation
		want   map[string]int
	}{
		"background":                     {"cm", "boss", background, map[string]int{"delete": n}},
		"background of custom resources": {"widget", "boss", background, map[string]int{"delete": n}},
		// One more: the owner's finalizer.
		"foreground":                 {"cm", "boss!block", foreground, map[string]int{"delete": n, "patch": 1}},
		"orphan":                     {"cm", "boss", orphan, map[string]int{"patch": n + 1}},
		"orphan of custom resources": {"widget", "boss", orphan, map[string]int{"patch": n + 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			if c.kind == "widget" {
				w.define(w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1"))
			}
			leaves := numbered("leaf", n)
			w.make(c.kind + " boss")
			w.make(dependents(c.kind, leaves, c.owner))
			w.settle()
			w.delete("boss", c.policy)
			w.awaitGone("boss")
			if c.policy == orphan {
				w.mustStay(leaves...)
			} else {
				w.awaitGone(leaves...)
				w.settle()
			}
			all := append(leaves, "boss")
			for verb, least := range c.want {
				w.awaitRequests(weirUser, verb, least, all...)
			}
			have := w.requests(weirUser, all...)
			delete(have, "list") // a watch that breaks is followed by a list
			if c.policy == foreground {
				have = foregroundRequests(w, weirUser, all)
				delete(have, "list")
			}
			if diff := cmp.Diff(c.want, have); diff != "" {
				t.Errorf("requests by verb (-want +have):\n%s", diff)
			}
		})
	}
}

// dependents are the lines of objects with one owner.
func dependents(kind string, names []string, owner string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%s %s owners=(%s)\n", kind, name, owner)
	}
	return b.String()
}
