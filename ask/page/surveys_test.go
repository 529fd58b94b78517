package page

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// sent is a group, or a fate, as it is sent.
type sent struct {
	items, total int
	text         string
}

// survey asks for what there is, by name of the group or fate.
func (w *town) survey(question, field, by string, parameters ...string) map[string]sent {
	w.Helper()
	found := map[string]sent{}
	all, _ := w.ask(http.StatusOK, question, parameters...)[field].([]any)
	for _, one := range all {
		g, _ := one.(map[string]any)
		items, _ := g["items"].([]any)
		total, _ := g["total"].(float64)
		name, _ := g[by].(string)
		found[name] = sent{len(items), int(total), fmt.Sprint(g)}
	}
	return found
}

// TestSurveysSendABoundedShare: of ten thousand objects that wait, a page needs to know how many
// there are, and some.
func TestSurveysSendABoundedShare(t *testing.T) {
	w := newTown(t)
	const many = mostListed + 30
	for i := range many {
		w.put(fmt.Sprintf("lost-%03d", i), "never")
		w.api.Put("configmaps", fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: ending-%03d, uid: ending-%03d,
			deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [operator.example.com/backup]}}`, i, i))
	}
	w.until("all of them", func() bool {
		_, lost := w.Follower.Search("lost-", 1)
		_, ending := w.Follower.Search("ending-", 1)
		return lost == many && ending == many
	})
	orphans := w.survey("orphans", "fates", "fate", "namespace", "shop")
	if got := orphans["delete"]; got.items != mostListed || got.total != many+1 { // and the one that was lost before
		t.Errorf("orphans: %d of %d are sent, want %d of %d", got.items, got.total, mostListed, many+1)
	}
	pending := w.survey("pending", "groups", "actor")
	if len(pending) != 1 {
		t.Errorf("groups: %v", pending)
	}
	for actor, got := range pending {
		if got.items != mostListed || got.total != many || !strings.Contains(got.text, "operator.example.com/backup") {
			t.Errorf("%q: %d of %d are sent, want %d of %d: %.300s", actor, got.items, got.total, mostListed, many, got.text)
		}
	}
	if elsewhere := w.survey("pending", "groups", "actor", "namespace", "elsewhere"); len(elsewhere) != 0 {
		t.Errorf("in another namespace: %v", elsewhere)
	}
}

// TestOrphansOfEachFate: what is deleted, what is released, and what is kept are told apart.
func TestOrphansOfEachFate(t *testing.T) {
	w := newTown(t)
	w.api.Put("configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: half, uid: half, ownerReferences: [
		{apiVersion: v1, kind: ConfigMap, name: boss, uid: boss}, {apiVersion: v1, kind: ConfigMap, name: never, uid: never}]}}`)
	w.api.Put("configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: unknown, uid: unknown, ownerReferences: [
		{apiVersion: example.com/v1, kind: Widget, name: never, uid: never}]}}`)
	w.untilNamed("half", "unknown")
	fates := w.survey("orphans", "fates", "fate")
	for fate, name := range map[string]string{"delete": "lost", "release": "half", "keep": "unknown"} {
		if got := fates[fate]; got.items != 1 || got.total != 1 || !strings.Contains(got.text, name) {
			t.Errorf("%s: %+v, want %s", fate, got, name)
		}
	}
}

// TestKindThatCannotBeListedIsSaid: a page that shows nothing of a kind says so, rather than that
// there is nothing.
func TestKindThatCannotBeListedIsSaid(t *testing.T) {
	w := newTownOf(t, func(r apitest.Request) *apitest.Reply {
		if strings.HasSuffix(r.Path, "/configmaps") {
			return apitest.Refuse(http.StatusForbidden, "Forbidden", "you may not list them")
		}
		return discovered(r)
	})
	for _, question := range []string{"pending", "orphans"} {
		said := w.ask(http.StatusOK, question)
		if unread := fmt.Sprint(said["unread"]); !strings.Contains(unread, "configmaps") || !strings.Contains(unread, "you may not list them") {
			t.Errorf("%s: what was not read is %s", question, unread)
		}
	}
	said := w.ask(http.StatusOK, "state")
	if text := fmt.Sprint(said); !strings.Contains(text, "you may not list them") {
		t.Errorf("state: %s", text)
	}
}

// TestOwnersInAnotherNamespaceAreNamed: they own nothing here, and who wonders why an object goes
// is told where they are.
func TestOwnersInAnotherNamespaceAreNamed(t *testing.T) {
	w := newTown(t)
	w.api.Put("configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: back-office, name: far, uid: far}}`)
	w.put("astray", "far")
	w.untilNamed("far", "astray")
	if got := w.survey("orphans", "fates", "fate", "namespace", "shop")["delete"]; !strings.Contains(got.text, "back-office") {
		t.Errorf("orphans: %s", got.text)
	}
	said := w.ask(http.StatusOK, "object", "kind", "configmaps", "namespace", "shop", "name", "astray")
	if why := fmt.Sprint(said["why"]); !strings.Contains(why, "back-office") {
		t.Errorf("why: %s", why)
	}
}
