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
func beside(companion bool, alone time.Duration) (d *Drainer, told *[]bool) {
	recorder := record.NewFakeRecorder(100)
	told = &[]bool{}
	d = New(Options{
		Store:     follow.NewStore(),
		Companion: companion, Alone: alone, Other: func(works bool) { *told = append(*told, works) }, Clock: &live.Clock{}, Log: logr.Discard(),
		Reporter: events.New(recorder, recorder, func(schema.GroupResource) schema.GroupVersionKind { return schema.GroupVersionKind{} }),
	})
	d.others.since = d.Clock.Now()
	return d, told
}

func terminating(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

// written adds what somebody wrote of a subresource just now.
func written(ns *corev1.Namespace, manager, subresource string) *corev1.Namespace {
	at := metav1.Now()
	ns.ManagedFields = append(ns.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, Time: &at})
	return ns
}

func TestTheFirstNamespaceTellsWhetherAnotherControllerWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, told := beside(false, 10*time.Second)
		defer d.Close()
		old := written(terminating("old"), "kube-controller-manager", "status") // before this one led
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
		if wait := d.alone(written(terminating("third"), "k3s", "status"), seen); wait != time.Minute {
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
		// What goes while this one drains it was let go by somebody: a person, or another controller.
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
		if want := []bool{false, true, true, false, false}; !slices.Equal(*told, want) {
			t.Errorf("told %v, want %v", *told, want)
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
			if wait := d().alone(written(terminating("shop"), "kube-controller-manager", "finalize"), time.Now()); wait != 0 {
				t.Errorf("it is left alone for %s", wait)
			}
		})
	}
}

func TestWhoWritesAsANamespaceController(t *testing.T) {
	at := metav1.NewTime(time.Unix(1000, 0))
	for _, c := range []struct {
		manager, subresource string
		operation            metav1.ManagedFieldsOperationType
		since                int64
		want                 bool
	}{
		{"kube-controller-manager", "status", "Update", 999, true},
		{"kube-controller-manager", "finalize", "Update", 999, true},
		{"k3s", "status", "Update", 999, true},
		{"kube-controller-manager", "status", "Update", 1000, false}, // before
		{"kube-controller-manager", "", "Update", 999, false},        // labels
		{"kube-controller-manager", "status", "Apply", 999, false},
		{"weir", "status", "Update", 999, false},
		{"kubectl", "finalize", "Update", 999, false},
		{"kubectl-replace", "finalize", "Update", 999, false},
	} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: c.manager, Subresource: c.subresource, Operation: c.operation, Time: &at}}}}
		if got := writtenBy(ns, time.Unix(c.since, 0)) != ""; got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
