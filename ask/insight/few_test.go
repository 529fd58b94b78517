package insight

import (
	"errors"
	"fmt"
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

// TestAllWhoHaveToActAreNamed: of many the first are told, and the others named; --full tells all.
func TestAllWhoHaveToActAreNamed(t *testing.T) {
	for many, causes := range map[int]int{5: 5, 6: 5, 7: 5, 40: 5} {
		w := NewWorld("x", []graph.Resource{{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}})
		deleted := &metav1.Time{Time: time.Unix(1, 0)}
		objects := []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "boss", UID: "boss", DeletionTimestamp: deleted, Finalizers: []string{metav1.FinalizerDeleteDependents}}}}
		blocks := true
		for i := range many {
			objects = append(objects, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: "x", Name: fmt.Sprintf("leaf-%02d", i), UID: types.UID(fmt.Sprintf("leaf-%02d", i)), DeletionTimestamp: deleted, Finalizers: []string{fmt.Sprintf("example.com/f%02d", i)},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "boss", UID: "boss", BlockOwnerDeletion: &blocks}},
			}})
		}
		w.List(schema.GroupResource{Resource: "configmaps"}, "1", objects)
		a, _ := w.Why("boss", Facts{}, time.Unix(2, 0))
		var short, full strings.Builder
		if err := errors.Join(a.Draw(&short, Style{}), a.Draw(&full, Style{Full: true})); err != nil {
			t.Fatal(err)
		}
		named := 0
		for i := range many {
			actor := fmt.Sprintf("the component behind the finalizer example.com/f%02d", i)
			if !strings.Contains(full.String(), "Who has to act: "+actor+".\n") {
				t.Errorf("of %d: %s is not named:\n%s", many, actor, &full)
			}
			if strings.Contains(short.String(), actor) {
				named++
			}
		}
		if n := strings.Count(short.String(), "Who has to act: "); len(a.Causes) != many || n != causes || named != min(many, 15) ||
			many > 15 && !strings.Contains(short.String(), fmt.Sprintf(" and %d more. --full shows them.", many-15)) {
			t.Errorf("of %d: %d causes, %d are told, %d actors:\n%s", many, len(a.Causes), n, named, &short)
		}
		if groups := w.Pending(time.Unix(2, 0)); len(groups) != many {
			t.Errorf("of %d: %d groups of what is being deleted, want one for each", many, len(groups))
		}
	}
}

// TestTheLastWhoRefusesIsNamed: of several Events about an object the last counts.
func TestTheLastWhoRefusesIsNamed(t *testing.T) {
	w := worldOf(map[string][]string{"boss": nil})
	var events []corev1.Event
	for i := range 9 {
		events = append(events, corev1.Event{
			Source: corev1.EventSource{Component: component}, Reason: v1beta1.ReasonCollectionRefused, InvolvedObject: corev1.ObjectReference{UID: "boss", Kind: "ConfigMap", Namespace: "x", Name: "boss"},
			Message: fmt.Sprintf(`admission webhook "w%d.example.com" denied the request: no`, i),
		})
	}
	a, _ := w.Why("boss", Facts{Events: events}, time.Unix(2, 0))
	var out strings.Builder
	if err := a.Draw(&out, Style{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "Who has to act: whoever runs the admission webhook w8.example.com.\n") {
		t.Errorf("the webhook w8 is not named:\n%s", &out)
	}
}

// TestInstancesAreCountedToTheLast: more than are looked at are not told as fewer.
func TestInstancesAreCountedToTheLast(t *testing.T) {
	widgets := graph.Resource{Group: "example.com", Resource: "widgets", Kind: "Widget", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}
	crds := graph.Resource{Group: definitions.Group, Resource: definitions.Resource, Kind: "CustomResourceDefinition", Version: "v1", Versions: []string{"v1"}, Collected: true}
	w := NewWorld("", []graph.Resource{widgets, crds})
	w.List(definitions, "1", []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com", UID: "crd", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, Finalizers: []string{cleanup}}}})
	objects := make([]metav1.PartialObjectMetadata, mostContent+7)
	for i := range objects {
		objects[i].Namespace, objects[i].Name, objects[i].UID = "x", fmt.Sprint("w", i), types.UID(fmt.Sprint("w", i))
	}
	w.List(widgets.GroupResource(), "1", objects)
	a, _ := w.Why("crd", Facts{}, time.Unix(2, 0))
	if want := fmt.Sprintf("%d widgets.example.com are left", mostContent+7); len(a.Causes) != 1 || !strings.Contains(a.Causes[0].What, want) {
		t.Errorf("no %q in %+v", want, a.Causes)
	}
}

// TestAnAnswerDoesNotDependOnTheOrderOfLists: which objects stand for the content of a namespace
// that is being deleted is the same, in whichever order the graph came to know them.
func TestAnAnswerDoesNotDependOnTheOrderOfLists(t *testing.T) {
	deleted := &metav1.Time{Time: time.Unix(1, 0)}
	var first string
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		w := NewWorld("", []graph.Resource{
			{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true},
			{Resource: "namespaces", Kind: "Namespace", Version: "v1", Versions: []string{"v1"}, Collected: true},
		})
		w.List(schema.GroupResource{Resource: "namespaces"}, "1", []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "ns", DeletionTimestamp: deleted}}})
		var objects []metav1.PartialObjectMetadata
		for _, i := range order {
			name := fmt.Sprint("c", i)
			objects = append(objects, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: "x", Name: name, UID: types.UID(name), DeletionTimestamp: deleted, Finalizers: []string{"example.com/hold"},
			}})
		}
		w.List(schema.GroupResource{Resource: "configmaps"}, "1", objects)
		a, _ := w.Why("ns", Facts{}, time.Unix(2, 0))
		var out strings.Builder
		if err := a.Draw(&out, Style{}); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = out.String()
		}
		if out.String() != first || !strings.Contains(first, "configmaps/x/c0 has the finalizer example.com/hold") {
			t.Errorf("in the order %d:\n%s\nin the first:\n%s", order, &out, first)
		}
	}
}
