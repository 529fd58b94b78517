package namespaces

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/policies/live"
)

// beside is a Drainer that leads, and what it told of another.
func beside(companion bool, alone time.Duration) (d *Drainer, reported *[]bool) {
	recorder := record.NewFakeRecorder(100)
	reported = &[]bool{}
	d = New(Options{
		Store:     follow.NewStore(),
		Companion: companion, Alone: alone, Other: func(works bool) { *reported = append(*reported, works) }, Clock: &live.Clock{}, Log: logr.Discard(),
		Reporter: events.New(recorder, recorder, func(schema.GroupResource) schema.GroupVersionKind { return schema.GroupVersionKind{} }),
	})
	d.others.since = d.Clock.Now()
	return d, reported
}

func terminating(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

// What clients write of a namespace, as managedFields have it.
const (
	oneCondition = `{"f:status":{"f:conditions":{".":{},"k:{\"type\":\"NamespaceContentRemaining\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}}}}`
	itsMessage   = `{"f:status":{"f:conditions":{"k:{\"type\":\"NamespaceDeletionContentFailure\"}":{"f:message":{}}}}}`
	ownCondition = `{"f:status":{"f:conditions":{"k:{\"type\":\"example.com/Cleaned\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}}}}`
	finalizers   = `{"f:spec":{"f:finalizers":{}}}`
)

// written adds what a client wrote of a subresource now.
func written(ns *corev1.Namespace, manager, subresource, fields string) *corev1.Namespace {
	return writtenAt(ns, manager, subresource, fields, time.Now())
}

func writtenAt(ns *corev1.Namespace, manager, subresource, fields string, at time.Time) *corev1.Namespace {
	ns.ManagedFields = append(ns.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, Time: &metav1.Time{Time: at}, FieldsV1: metav1.NewFieldsV1(fields)})
	return ns
}

func TestTheFirstNamespaceTellsWhetherAnotherControllerWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, reported := beside(false, 10*time.Second)
		defer d.Close()
		old := written(terminating("old"), "kube-controller-manager", "status", oneCondition) // before this one led
		time.Sleep(time.Hour)
		d.others.since = d.Clock.Now()
		seen := time.Now()
		if wait := d.alone(old, seen); wait != 10*time.Second {
			t.Errorf("the first is left alone for %s, want 10s", wait)
		}
		time.Sleep(10 * time.Second)
		if wait := d.alone(old, seen); wait != 0 {
			t.Errorf("nobody touched it, and it is left alone for %s more", wait)
		}
		if wait := d.alone(terminating("next"), time.Now()); wait != 0 {
			t.Errorf("the next one is left alone for %s: that none works is known", wait)
		}
		// One begins: it is known by what it writes, and namespaces are left to it.
		if wait := d.alone(written(terminating("third"), "k3s", "status", oneCondition), seen); wait != time.Minute {
			t.Errorf("a namespace of the other is left alone for %s, want a minute", wait)
		}
		if wait := d.alone(terminating("fourth"), time.Now()); wait != time.Minute {
			t.Errorf("another namespace is left alone for %s, want a minute", wait)
		}
		time.Sleep(time.Minute)
		if wait := d.alone(terminating("fourth"), seen); wait != 10*time.Second {
			t.Errorf("after a minute it is left alone for %s, want 10s: it tells whether the other still works", wait)
		}
		time.Sleep(5 * time.Second)
		d.Changed("fourth", follow.Went)
		if wait := d.alone(terminating("fifth"), time.Now()); wait != time.Minute {
			t.Errorf("the other let one go, and the next is left alone for %s", wait)
		}
		time.Sleep(time.Minute + 10*time.Second)
		if wait := d.alone(terminating("fifth"), seen); wait != 0 {
			t.Errorf("the other is off, and it is left alone for %s", wait)
		}
		// What goes while this one drains it was finalized by another: a person, or a controller.
		d.ending["sixth"] = ending{seen: time.Now()}
		d.begin("sixth", "sixth")
		d.Changed("sixth", follow.Went)
		if wait := d.alone(terminating("seventh"), time.Now()); wait != 10*time.Second {
			t.Errorf("after one that others let go the next is left alone for %s, want 10s", wait)
		}
		time.Sleep(10 * time.Second)
		d.alone(terminating("seventh"), seen)
		d.begin("eighth", "eighth")
		d.Changed("eighth", follow.Went) // it was ended by this one: ended
		if wait := d.alone(terminating("ninth"), time.Now()); wait != 0 {
			t.Errorf("after one that this one let go the next is left alone for %s", wait)
		}
		if want := []bool{false, true, true, false, false}; !slices.Equal(*reported, want) {
			t.Errorf("reported %v, want %v", *reported, want)
		}
	})
}

// finalizing is an API server that is asked to let a namespace go.
type finalizing struct {
	typedcorev1.NamespaceInterface
	answer func(*corev1.Namespace) error
}

func (f *finalizing) Finalize(_ context.Context, ns *corev1.Namespace, _ metav1.UpdateOptions) (*corev1.Namespace, error) {
	return ns, f.answer(ns)
}

// TestWhoLetANamespaceGoIsToldByTheAnswer, before which the watch may show its end.
func TestWhoLetANamespaceGoIsToldByTheAnswer(t *testing.T) {
	resource := schema.GroupResource{Resource: "namespaces"}
	for name, c := range map[string]struct {
		before, after bool  // the watch shows its end before the answer, or after it
		answer        error // of the API server
		alone         time.Duration
	}{
		"this one, as the watch shows later":  {false, true, nil, 0},
		"this one, as the watch has shown":    {true, false, nil, 0},
		"another, as the watch shows later":   {false, true, apierrors.NewNotFound(resource, "shop"), 10 * time.Second},
		"another, as the watch has shown":     {true, false, apierrors.NewNotFound(resource, "shop"), 10 * time.Second},
		"another, after this one was refused": {false, true, apierrors.NewForbidden(resource, "shop", nil), 10 * time.Second},
		"nobody, where this one was refused":  {false, false, apierrors.NewForbidden(resource, "shop", nil), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, _ := beside(false, 10*time.Second)
				defer d.Close()
				d.others.passed = true
				d.Namespaces = &finalizing{answer: func(*corev1.Namespace) error {
					if c.before {
						d.Changed("shop", follow.Went)
					}
					return c.answer
				}}
				d.ending["shop"] = ending{seen: time.Now(), uid: "shop"}
				d.begin("shop", "shop")
				if _, err := d.finalize(t.Context(), terminating("shop")); (err != nil) != apierrors.IsForbidden(c.answer) {
					t.Error(err)
				}
				if c.after {
					d.Changed("shop", follow.Went)
				}
				if wait := d.alone(terminating("next"), time.Now()); wait != c.alone {
					t.Errorf("the next is left alone for %s, want %s", wait, c.alone)
				}
			})
		})
	}
}

func TestNoNamespaceIsLeftAloneWhereThatIsNotAsked(t *testing.T) {
	for name, d := range map[string]func() *Drainer{
		"companion": func() *Drainer { d, _ := beside(true, time.Minute); d.Close(); return d },
		"not asked": func() *Drainer { d, _ := beside(false, 0); d.Close(); return d },
	} {
		t.Run(name, func(t *testing.T) {
			if wait := d().alone(written(terminating("shop"), "kube-controller-manager", "status", oneCondition), time.Now()); wait != 0 {
				t.Errorf("it is left alone for %s", wait)
			}
		})
	}
}

// TestWhoWritesAsANamespaceController: who writes a condition that only such a one does. Operators have conditions and finalizers of their own.
func TestWhoWritesAsANamespaceController(t *testing.T) {
	at := metav1.NewTime(time.Unix(1000, 0))
	for _, c := range []struct {
		manager, subresource string
		operation            metav1.ManagedFieldsOperationType
		fields               string
		since, now           int64
		want                 bool
	}{
		{"kube-controller-manager", "status", "Update", oneCondition, 999, 1001, true},
		{"kube-controller-manager", "status", "Update", itsMessage, 999, 1001, true}, // of a condition that Weir wrote first
		{"k3s", "status", "Update", oneCondition, 999, 1001, true},
		{"operator", "status", "Update", ownCondition, 999, 1001, false},
		{"operator", "status", "Update", `{"f:status":{"f:phase":{}}}`, 999, 1001, false},
		{"operator", "finalize", "Update", finalizers, 999, 1001, false}, // its own: the one of namespace controllers is still there
		{"operator", "status", "Update", `{`, 999, 1001, false},
		{"kube-controller-manager", "status", "Update", oneCondition, 1000, 1001, false}, // before
		{"kube-controller-manager", "status", "Update", oneCondition, 999, 900, false},   // by no API server's clock
		{"kube-controller-manager", "", "Update", `{"f:metadata":{"f:labels":{}}}`, 999, 1001, false},
		{"kube-controller-manager", "status", "Apply", oneCondition, 999, 1001, false},
		{"weir", "status", "Update", oneCondition, 999, 1001, false},
		{"kubectl", "status", "Update", oneCondition, 999, 1001, false},
		{"kubectl-edit", "status", "Update", oneCondition, 999, 1001, false},
	} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: c.manager, Subresource: c.subresource, Operation: c.operation, Time: &at, FieldsV1: metav1.NewFieldsV1(c.fields)}}}}
		if got, _ := writtenBy(ns, time.Unix(c.since, 0), time.Unix(c.now, 0)); (got != "") != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestOperatorOfNamespacesStopsNoDraining: one that has a finalizer and a condition of its own on each of them.
func TestOperatorOfNamespacesStopsNoDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, reported := beside(false, 10*time.Second)
		defer d.Close()
		seen := time.Now()
		d.alone(terminating("first"), seen)
		time.Sleep(10 * time.Second)
		for _, name := range []string{"first", "second", "third"} {
			ns := written(written(terminating(name), "operator", "status", ownCondition), "operator", "finalize", finalizers)
			if wait := d.alone(ns, seen); wait != 0 {
				t.Errorf("namespace %s is left alone for %s because of an operator", name, wait)
			}
		}
		if want := []bool{false}; !slices.Equal(*reported, want) {
			t.Errorf("reported %v, want %v", *reported, want)
		}
	})
}

// TestForgedWriteHoldsNamespacesOnceForAMinute, whatever its time: who may write a namespace may write its managedFields.
func TestForgedWriteHoldsNamespacesOnceForAMinute(t *testing.T) {
	for name, c := range map[string]struct {
		ahead time.Duration
		held  time.Duration
	}{
		"as of now":        {0, time.Minute + 10*time.Second},
		"a little ahead":   {20 * time.Second, time.Minute + 10*time.Second},
		"of another clock": {1000 * time.Hour, 10 * time.Second}, // as any first namespace
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, _ := beside(false, 10*time.Second)
				defer d.Close()
				time.Sleep(time.Second)
				began := time.Now()
				ns := writtenAt(terminating("shop"), "forger", "status", oneCondition, began.Add(c.ahead))
				for wait := d.alone(ns, began); wait > 0; wait = d.alone(ns, began) {
					time.Sleep(wait)
					if time.Since(began) > time.Hour {
						t.Fatal("it is held for more than an hour")
					}
				}
				if held := time.Since(began); held != c.held {
					t.Errorf("it was held for %s, want %s", held, c.held)
				}
			})
		})
	}
}
