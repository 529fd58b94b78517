package ask

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// client is one of an API server in memory.
func client(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// unreadKinds are what a World notes that could not be read.
func unreadKinds(w *insight.World) (out []string) {
	for _, u := range w.Unread() {
		out = append(out, u.Kind+": "+u.Reason)
	}
	return out
}

// factsTown has what the objects of TestFactsOf are about.
func factsTown() *apitest.Server {
	api := apitest.New()
	for _, pod := range []string{"name: web, namespace: shop", "name: db, namespace: bank"} {
		api.Put("pods", "{apiVersion: v1, kind: Pod, metadata: {"+pod+"}}")
	}
	api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	api.Put("nodes", "{apiVersion: v1, kind: Node, metadata: {name: here}}")
	api.Put("heldcollections", "{apiVersion: weir.dev/v1beta1, kind: HeldCollection, metadata: {name: requested.pods}}")
	return api
}

// shownFacts are facts in a line.
func shownFacts(f insight.Facts) string {
	names := func(of []unstructured.Unstructured) string {
		var out []string
		for i := range of {
			out = append(out, of[i].GetName())
		}
		return strings.Join(out, ",")
	}
	var out []string
	if f.Pods != nil {
		out = append(out, "pods "+names(f.Pods))
	}
	if f.NamespaceGone != nil && *f.NamespaceGone {
		out = append(out, "namespace gone")
	}
	if f.NodeGone != nil {
		out = append(out, fmt.Sprintf("node gone %t", *f.NodeGone))
	}
	if f.Held != nil {
		out = append(out, "held by "+f.Held.GetName())
	}
	return strings.Join(out, "; ")
}

// TestFactsAreReadThatSayWhyAnObjectDoesNotGo: of each kind what may hold it, in the namespace
// where that is, and nothing of one that stays.
func TestFactsAreReadThatSayWhyAnObjectDoesNotGo(t *testing.T) {
	const going = ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [example.com/hold]"
	for name, c := range map[string]struct {
		kind   schema.GroupVersionResource
		object string
		want   string
		asked  int // requests besides that for Events
	}{
		"a claim":                          {claimKind, "kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop" + going + "}", "pods web", 2},
		"a claim that stays":               {claimKind, "kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop}", "", 0},
		"a volume":                         {volumeKind, "kind: PersistentVolume, metadata: {name: disk" + going + "}, spec: {claimRef: {namespace: bank, name: data}}", "", 0},
		"a pod on a node":                  {podKind, "kind: Pod, metadata: {name: web, namespace: shop" + going + "}, spec: {nodeName: here}", "node gone false", 2},
		"a pod on a node that is gone":     {podKind, "kind: Pod, metadata: {name: web, namespace: shop" + going + "}, spec: {nodeName: away}", "node gone true", 2},
		"a pod on no node":                 {podKind, "kind: Pod, metadata: {name: web, namespace: shop" + going + "}", "", 1},
		"a namespace":                      {namespaceKind, "kind: Namespace, metadata: {name: shop" + going + "}", "", 0},
		"one whose deletion is held":       {podKind, "kind: Pod, metadata: {name: web, namespace: shop, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [" + v1beta1.Finalizer + "]}", "held by requested.pods", -1},
		"one whose namespace is gone":      {podKind, "kind: Pod, metadata: {name: web, namespace: ghost" + going + "}", "namespace gone", 1},
		"another kind of the same name":    {schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "pods"}, "kind: Pod, metadata: {name: web, namespace: shop" + going + "}, spec: {nodeName: away}", "", 1},
		"one that is held, and not Weir's": {podKind, "kind: Pod, metadata: {name: web, namespace: shop" + going + "}", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			api := factsTown()
			asked := 0
			api.Intercept(func(r apitest.Request) *apitest.Reply {
				if !strings.HasSuffix(r.Path, "/events") {
					asked++
				}
				if r.Method != "GET" {
					t.Errorf("it sends %s", r)
				}
				return nil
			})
			o := &unstructured.Unstructured{Object: parsed(t, "{apiVersion: v1, "+c.object+"}")}
			o.SetUID("uid")
			w := insight.NewWorld("shop", nil)
			got := shownFacts(factsOf(t.Context(), client(t, api.Config()), w, c.kind, o))
			if got != c.want || c.asked >= 0 && asked != c.asked || len(w.Unread()) > 0 {
				t.Errorf("%q of %d requests, want %q of %d; not read: %q", got, asked, c.want, c.asked, unreadKinds(w))
			}
		})
	}
}

// TestAPolicyIsAskedOnlyWhereThereIsOne: and nothing is said of an object that is not in the World.
func TestAPolicyIsAskedOnlyWhereThereIsOne(t *testing.T) {
	var f insight.Facts
	o := &unstructured.Unstructured{}
	o.SetUID("none")
	askPolicies(t.Context(), nil, insight.NewWorld("shop", nil), podKind, o, &f)
	if f.Verdict != nil || f.Enforcement != nil {
		t.Errorf("policies say %v, %v", f.Verdict, f.Enforcement)
	}
}

// TestManyWorkloadsAreNotAll: that a component is not among the first of them proves nothing.
func TestManyWorkloadsAreNotAll(t *testing.T) {
	api := apitest.New()
	for i := range mostWorkloads + 1 {
		api.Put("daemonsets", fmt.Sprintf("{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: shop, name: d%d}}", i))
	}
	w := insight.NewWorld("shop", nil)
	out := (&factReader{client(t, api.Config()), w}).components(t.Context())
	if out.Complete || len(out.Workloads) != mostWorkloads || len(w.Unread()) > 0 {
		t.Errorf("complete %t, %d workloads, not read: %q", out.Complete, len(out.Workloads), unreadKinds(w))
	}
}

// recorded is what Weir records of what went because of an object.
func recorded(reason, namespace, apiVersion, kind, name, says string) corev1.Event {
	in := namespace
	if in == "" {
		in = metav1.NamespaceDefault
	}
	return corev1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: strings.ToLower(reason + "." + kind + "." + name)},
		Reason: reason, Message: says, Source: corev1.EventSource{Component: "weir"}, LastTimestamp: metav1.NewTime(time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)),
		InvolvedObject: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, UID: "uid-of-event-1"},
	}
}

// history has a town answer lists of Events by what is asked for, as the API server does: by reason
// and namespace, in pages of one.
func (w *town) history(all ...corev1.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = func(r apitest.Request) *apitest.Reply {
		rest, about := strings.CutPrefix(r.Path, "/api/v1/")
		if !about || !strings.HasSuffix(rest, "events") {
			return nil
		}
		in := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(rest, "events"), "namespaces/"), "/")
		query := queryOf(r)
		var some []any
		for i := range all {
			if (in == "" || all[i].Namespace == in) && query.Get("fieldSelector") == "reason="+all[i].Reason {
				one, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&all[i])
				if err != nil {
					panic(err)
				}
				some = append(some, one)
			}
		}
		page, meta := 0, map[string]any{"resourceVersion": "1"}
		_, _ = fmt.Sscan(query.Get("continue"), &page)
		if page+1 < len(some) {
			meta["continue"] = fmt.Sprint(page + 1)
		}
		return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "v1", "kind": "EventList", "metadata": meta, "items": some[min(page, len(some)):min(page+1, len(some))]}}
	}
}

// TestHistoryIsFoundWhereItsEventsAre: in the namespace of the object, of what is in none in the
// namespace default, and of all pages.
func TestHistoryIsFoundWhereItsEventsAre(t *testing.T) {
	const shop, bank, wide = "0s ago  ConfigMap shop/boss: 2 objects went\n", "0s ago  Secret bank/key: 1 object went\n", "0s ago  Namespace shop: 9 objects went\n"
	second, third := recorded("Cascade", "bank", "v1", "Secret", "key", "1 object went"), recorded("Cascade", "", "v1", "Namespace", "shop", "9 objects went")
	second.InvolvedObject.UID, third.InvolvedObject.UID = "uid-of-event-2", "uid-of-event-3"
	other := recorded("Killing", "shop", "v1", "ConfigMap", "boss", "something else")
	for args, want := range map[string]string{
		"history":                            shop,
		"history -n bank":                    bank,
		"history -n default":                 wide,
		"history -A":                         shop + bank + wide,
		"history cm boss":                    shop,
		"history cm/boss -n shop":            shop,
		"history secret key -n bank":         bank,
		"history secret/key -A":              bank,
		"history namespace shop":             wide,
		"history namespaces/shop -n bank":    wide,
		"history namespace shop -A":          wide,
		"history cm boss -n bank":            "No cascade",
		"history secret boss":                "No cascade",
		"history -n none":                    "No cascade",
		"why cm boss":                        "configmaps/shop/boss is not being deleted.",
		"why secret key -n bank":             "secrets/bank/key is not there.\n\n1. It was deleted 0s ago: 1 object went.",
		"why secret key -n bank -o yaml":     "gone: true\n",
		"why cm gone":                        "",
		"history secret key -n bank -o yaml": "what: 1 object went\n",
	} {
		t.Run(args, func(t *testing.T) {
			w := newTown(t)
			w.history(recorded("Cascade", "shop", "v1", "ConfigMap", "boss", "2 objects went"), other, second, third)
			s := w.run(strings.Fields(args)...)
			if want == "" {
				s.mustFail(t, `configmaps "gone" not found`, "and nothing is recorded of its deletion")
				return
			}
			whole := strings.HasPrefix(want, "0s ago")
			if s.failed != nil || whole && s.out != want || !strings.Contains(s.out, want) {
				t.Errorf("%v, it prints\n%s\nwant\n%s", s.failed, s.out, want)
			}
		})
	}
}

// TestHalfOfTheEventsIsNoHistory: half of what is recorded must not look like all.
func TestHalfOfTheEventsIsNoHistory(t *testing.T) {
	w := newTown(t)
	w.history(recorded("Cascade", "shop", "v1", "ConfigMap", "boss", "2 objects went"), recorded("Cascade", "shop", "v1", "ConfigMap", "leaf", "1 object went"))
	pages := w.answer
	w.answer = func(r apitest.Request) *apitest.Reply {
		if queryOf(r).Get("continue") != "" {
			return apitest.Refuse(410, "Expired", "the continue token is too old")
		}
		return pages(r)
	}
	if s := w.run("history"); s.failed == nil || s.out != "" || !strings.Contains(s.failed.Error(), "too old") {
		t.Errorf("%v, it prints %q", s.failed, s.out)
	}
}
