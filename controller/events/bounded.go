package events

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/weir-dev/weir/controller/words"
)

// mostNote is how long the text of an Event is, in bytes: more the API server does not take of
// events.k8s.io. What others choose is in it, as the finalizers of an object and the answers of
// webhooks.
const mostNote = 1024

// bounded records Events with no more text than that.
type bounded struct{ record.EventRecorder }

// Event implements record.EventRecorder.
func (b bounded) Event(on runtime.Object, eventType, reason, message string) {
	b.EventRecorder.Event(on, eventType, reason, words.Cut(message, mostNote))
}

// Eventf implements record.EventRecorder.
func (b bounded) Eventf(on runtime.Object, eventType, reason, format string, args ...any) {
	b.Event(on, eventType, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements record.EventRecorder.
func (b bounded) AnnotatedEventf(on runtime.Object, annotations map[string]string, eventType, reason, format string, args ...any) {
	b.EventRecorder.AnnotatedEventf(on, annotations, eventType, reason, "%s", words.Cut(fmt.Sprintf(format, args...), mostNote))
}
