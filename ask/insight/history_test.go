package insight

import (
	"strings"
	"testing"
	"time"

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
		if all := RecordsOf(events, Object{Kind: "secrets", Namespace: namespace, Name: "web"}, "Secret", false); len(all) != want {
			t.Errorf("in %q: %d records, want %d", namespace, len(all), want)
		}
	}
	if all := RecordsOf(events, Object{Kind: "secrets", Name: "web"}, "Secret", true); len(all) != 3 {
		t.Errorf("anywhere: %d records, want 3", len(all))
	}
}
