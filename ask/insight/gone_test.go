package insight

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1beta1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// said is an Event of Weir's about a ConfigMap of the namespace x.
func said(reason, name string, uid types.UID, message string) corev1.Event {
	return corev1.Event{Reason: reason, Message: message, Source: corev1.EventSource{Component: component}, LastTimestamp: metav1.NewTime(noon.Add(-2 * time.Minute)),
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "x", Name: name, UID: uid}}
}

func shown(t *testing.T, a Answer) string {
	t.Helper()
	var out strings.Builder
	if err := a.Draw(&out, Style{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWhatIsGoneIsToldByTheEventsOfItsCascade(t *testing.T) {
	cascade := said("Cascade", "boss", "1", "2 objects that it owned, directly or not, were deleted")
	cascade.Annotations = map[string]string{v1beta1.CollectedAnnotation: `[{"kind": "configmaps", "namespace": "x", "name": "part", "uid": "2"}]`}
	events := []corev1.Event{cascade, said("Killing", "boss", "1", "no")}
	gone := func(name string) string {
		a, ok := Gone(Object{Kind: "configmaps", Namespace: "x", Name: name}, "ConfigMap", events, noon)
		if !ok {
			return ""
		}
		return shown(t, a)
	}
	both := "2 objects that it owned, directly or not, were deleted"
	if want := "configmaps/x/boss is not there.\n\n1. It was deleted 2m ago: " + both + ".\n"; !strings.HasPrefix(gone("boss"), want) {
		t.Errorf("%s\nwant\n%s", gone("boss"), want)
	}
	if want := "1. It was deleted 2m ago, because of ConfigMap x/boss: " + both + ".\n"; !strings.Contains(gone("part"), want) {
		t.Errorf("%s\nwant\n%s", gone("part"), want)
	}
	if got := gone("another"); got != "" {
		t.Errorf("of what is not recorded nothing is known, and it says\n%s", got)
	}
	events[0].Annotations[v1beta1.CollectedAnnotation] = `{"not": "a list"}`
	if got := gone("part"); got != "" {
		t.Errorf("an Event that is not written as Weir does names nothing, and it says\n%s", got)
	}
}

// TestRefusalsOfWhichEventsTellAreCauses: who refuses is named, of what the object waits for, and
// of nothing else.
func TestRefusalsOfWhichEventsTellAreCauses(t *testing.T) {
	kind := schema.GroupResource{Resource: "configmaps"}
	w := NewWorld("x", []graph.Resource{{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true, Deletable: true, Listable: true}})
	now := metav1.NewTime(noon)
	of := func(name string, owners ...metav1.OwnerReference) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: types.UID(name), ResourceVersion: "1", OwnerReferences: owners}}
	}
	boss := of("boss")
	boss.DeletionTimestamp, boss.Finalizers = &now, []string{metav1.FinalizerDeleteDependents}
	blocks := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "boss", UID: "boss", BlockOwnerDeletion: new(true)}
	w.List(kind, "1", []metav1.PartialObjectMetadata{boss, of("one", blocks), of("two", blocks), of("other")})
	forbidden := `cannot delete (owner is being deleted foreground: ConfigMap x/boss): configmaps "two" is forbidden: User "weir" cannot delete resource "configmaps"`
	denied := `cannot delete (why): admission webhook "guard.example.com" denied the request: not today`
	foreign := said("CollectionRefused", "one", "one", `admission webhook "false.example.com" denied the request`)
	foreign.Source.Component = "kubelet"
	facts := Facts{Events: []corev1.Event{said("CollectionRefused", "one", "one", denied), said("CollectionRefused", "two", "two", forbidden),
		said("CollectionRefused", "other", "other", `admission webhook "else.example.com" denied the request`), foreign}}
	a, _ := w.Why("boss", facts, noon)
	var actors []string
	for _, c := range a.Causes {
		actors = append(actors, c.Actor)
	}
	want := []string{"whoever grants the user weir its rights (RBAC)", "whoever runs the admission webhook guard.example.com"}
	if strings.Join(actors, "; ") != strings.Join(want, "; ") {
		t.Errorf("these have to act: %q, want %q\n%s", actors, want, shown(t, a))
	}
}
