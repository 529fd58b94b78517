package e2e

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// awaitEvent waits for an Event on an object, and returns it.
func (w *fixture) awaitEvent(name, reason string) corev1.Event {
	w.Helper()
	var found []corev1.Event
	w.until(fmt.Sprintf("%s has an Event %s", name, reason), func(context.Context) (bool, error) {
		found = w.events(name, reason)
		return len(found) > 0, nil
	})
	return found[0]
}

// events are the Events on an object with a reason; the object may be gone.
func (w *fixture) events(name, reason string) []corev1.Event {
	w.Helper()
	o := w.of(name)
	namespace := o.namespace
	if o.cluster {
		namespace = metav1.NamespaceDefault
	}
	list, err := w.typed.CoreV1().Events(namespace).List(w.Context(), metav1.ListOptions{
		FieldSelector: fmt.Sprintf("involvedObject.uid=%s,reason=%s", o.uid, reason),
	})
	if err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// told is how often an Event was recorded: the same thing said twice is one
// Event with a count.
func told(events []corev1.Event) int {
	n := 0
	for _, e := range events {
		n += int(max(e.Count, 1))
	}
	return n
}
