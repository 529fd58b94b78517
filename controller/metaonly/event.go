package metaonly

import (
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Numbers of fields on the wire.
const (
	fieldType, fieldObject = 1, 2 // of WatchEvent
	fieldRawObject         = 1    // of RawExtension
)

// events decodes the frames of a watch: a word, and an object, which it leaves where it is.
// client-go decodes the object before it reads the next frame into the same place.
type events struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (s events) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return s.Serializer.Decode(data, defaults, into)
	}
	var word string
	var object []byte
	if !messages(data, func(field protowire.Number, value []byte) bool {
		switch field {
		case fieldType:
			word = typeOf(value)
		case fieldObject:
			return messages(value, func(field protowire.Number, value []byte) bool {
				if field == fieldRawObject {
					object = value
				}
				return true
			})
		}
		return true
	}) {
		return s.Serializer.Decode(data, defaults, into)
	}
	event.Type, event.Object.Raw = word, object
	kind := metav1.SchemeGroupVersion.WithKind("WatchEvent")
	return event, &kind, nil
}

// typeOf is the word without a copy of it.
func typeOf(word []byte) string {
	switch string(word) {
	case string(watch.Added):
		return string(watch.Added)
	case string(watch.Modified):
		return string(watch.Modified)
	case string(watch.Deleted):
		return string(watch.Deleted)
	case string(watch.Bookmark):
		return string(watch.Bookmark)
	}
	return string(word)
}
