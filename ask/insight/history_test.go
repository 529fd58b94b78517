package insight

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestHistoryTellsTheLastOfEachCascade(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	event := func(reason, namespace, name, uid string, ago time.Duration, text string) corev1.Event {
		return corev1.Event{
			Reason: reason, Message: text, Source: corev1.EventSource{Component: "weir"}, LastTimestamp: metav1.NewTime(now.Add(-ago)),
			InvolvedObject: corev1.ObjectReference{Kind: "Deployment", Namespace: namespace, Name: name, UID: types.UID(uid)},
		}
	}
	events := []corev1.Event{
		event("Cascade", "shop", "web", "1", 9*time.Minute, "3 objects"),
		event("Killing", "shop", "web", "1", time.Second, "something else"),
		event("Cascade", "", "wide", "2", 2*time.Minute, "1 object"),
		event("Cascade", "shop", "web", "1", 3*time.Minute, "4 objects"),
		event("Cascade", "shop", "web", "3", 4*time.Minute, "of another of that name"),
	}
	var out strings.Builder
	if err := DrawHistory(&out, History(events), now, Style{}); err != nil {
		t.Fatal(err)
	}
	want := `2m ago  Deployment wide: 1 object
3m ago  Deployment shop/web: 4 objects
4m ago  Deployment shop/web: of another of that name
`
	if out.String() != want {
		t.Errorf("told\n%s\nwant\n%s", out.String(), want)
	}
}

// TestHistoryIsNoLongerThanAScreen: unless all of it is asked for.
func TestHistoryIsNoLongerThanAScreen(t *testing.T) {
	all := make([]Cascade, 100)
	for style, want := range map[Style]int{{}: mostLines, {Full: true}: 100} {
		var out strings.Builder
		if err := DrawHistory(&out, all, time.Time{}, style); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); n != want || style.Full == strings.Contains(out.String(), "… and 61 before that: --full shows them") {
			t.Errorf("%d lines, want %d\n%s", n, want, out.String())
		}
	}
}

// TestHistoryIsOfWeirsEvents: what others call a cascade is something else.
func TestHistoryIsOfWeirsEvents(t *testing.T) {
	events := []corev1.Event{{Reason: "Cascade", Message: "all of it", Source: corev1.EventSource{Component: "waterfalls"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web", UID: "1"}}}
	if all := History(events); len(all) != 0 {
		t.Errorf("told %v", all)
	}
}

// TestHistoryOfANameAnywhere: in all namespaces, of what went first and of what went along.
func TestHistoryOfANameAnywhere(t *testing.T) {
	event := func(namespace, name, uid, collected string) corev1.Event {
		return corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"weir.dev/collected": collected}},
			Reason:     "Cascade", Message: "1 object", Source: corev1.EventSource{Component: "weir"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name, UID: types.UID(uid)},
		}
	}
	events := []corev1.Event{
		event("shop", "web", "1", ""), event("bank", "web", "2", ""), event("bank", "other", "3", ""),
		event("zoo", "owner", "4", `[{"kind": "secrets", "namespace": "zoo", "name": "web", "uid": "5"}]`),
	}
	for namespace, want := range map[string]int{"shop": 1, "bank": 1, "zoo": 1, "": 0} {
		if all := RecordsOf(events, Object{Kind: "secrets", Namespace: namespace, Name: "web"}, "Secret"); len(all) != want {
			t.Errorf("in %q: %d records, want %d", namespace, len(all), want)
		}
	}
	if all := RecordsAnywhere(events, Object{Kind: "secrets", Name: "web"}, "Secret"); len(all) != 3 {
		t.Errorf("anywhere: %d records, want 3", len(all))
	}
}

// TestHistoryTellsCascadesOfOneCauseInOneLine: as those of a definition's instances.
func TestHistoryTellsCascadesOfOneCauseInOneLine(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var events []corev1.Event
	add := func(reason, api, kind, name string, ago time.Duration, text, collected string) {
		events = append(events, corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"weir.dev/collected": collected}},
			Reason:     reason, Message: text, Source: corev1.EventSource{Component: "weir"},
			LastTimestamp:  metav1.NewTime(now.Add(-ago)),
			InvolvedObject: corev1.ObjectReference{APIVersion: api, Kind: kind, Namespace: "shop", Name: name, UID: types.UID(api + kind + name)},
		})
	}
	one := "1 object that it owned was deleted by garbage collection within 1s: 1 configmaps"
	names := `[{"kind": "configmaps", "namespace": "shop", "name": "c", "uid": "c"}]`
	for i := range 600 {
		add("Cascade", "example.com/v1", "Widget", fmt.Sprintf("w%03d", i), time.Minute+time.Duration(i)*time.Second/10, one, names)
	}
	add("Cascade", "example.com/v1", "Widget", "early", time.Hour, one, names)   // at another time
	add("Cascade", "other.com/v1", "Widget", "other", time.Minute, one, names)   // of another kind
	add("Cascade", "example.com/v1", "Widget", "asked", time.Minute, one, names) // by somebody
	add("DeletionRequested", "example.com/v1", "Widget", "asked", time.Minute, "by ben", "")
	add("Cascade", "example.com/v1", "Widget", "policy", time.Minute, one+"; policy p", names) // by a policy
	add("Cascade", "example.com/v1", "Widget", "many", time.Minute, "60 objects", names)       // not all of them named
	for i := range 4 {
		add("DeletionRequested", "v1", "Secret", fmt.Sprintf("s%d", i), 2*time.Hour, "deleted at the request of anna", "")
	}
	for i := range 3 { // few
		add("DeletionRequested", "v1", "Pod", fmt.Sprintf("p%d", i), 3*time.Hour, "deleted at the request of anna", "")
	}
	var out strings.Builder
	if err := DrawHistory(&out, History(events), now, Style{}); err != nil {
		t.Fatal(err)
	}
	want := `60s ago  Widget shop/asked: by ben; ` + one + `
60s ago  Widget shop/many: 60 objects
60s ago  Widget shop/policy: ` + one + `; policy p
60s ago  Widget shop/w000, shop/w001, shop/w002 and 597 more: 600 objects that they owned, directly or not, were deleted by garbage collection: 600 configmaps
60s ago  Widget shop/other: ` + one + `
60m ago  Widget shop/early: ` + one + `
120m ago  Secret shop/s0, shop/s1, shop/s2 and 1 more: deleted at the request of anna
3h ago  Pod shop/p0: deleted at the request of anna
3h ago  Pod shop/p1: deleted at the request of anna
3h ago  Pod shop/p2: deleted at the request of anna
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
