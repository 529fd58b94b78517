package metaonly

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Numbers of fields on the wire, from the API's generated.proto files.
const (
	fieldTypeMeta, fieldRaw, fieldEncoding, fieldContentType = 1, 2, 3, 4 // of runtime.Unknown
	fieldAPIVersion, fieldKind                               = 1, 2       // of runtime.TypeMeta
	fieldMetadata                                            = 1          // of PartialObjectMetadata

	// of ObjectMeta
	fieldName, fieldNamespace, fieldUID, fieldResourceVersion = 1, 3, 5, 6
	fieldDeletionTimestamp, fieldOwners, fieldFinalizers      = 9, 13, 14
	fieldManagedFields, lastField                             = 17, 17
)

// always are the fields of ObjectMeta that are decoded of every object.
const always = 1<<fieldName | 1<<fieldNamespace | 1<<fieldUID | 1<<fieldResourceVersion | 1<<fieldDeletionTimestamp | 1<<fieldOwners | 1<<fieldFinalizers

var (
	prefix        = []byte("k8s\x00") // of what the API server sends as protobuf
	partialObject = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	apiVersion    = []byte(metav1.SchemeGroupVersion.String())
	partialKind   = []byte(partialObject.Kind)
)

// objects decodes what a watch brings, one object at a time.
type objects struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (s objects) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into == nil {
		if m := metadataOf(data); m != nil {
			is := partialObject
			return m, &is, nil
		}
	}
	return s.Serializer.Decode(data, defaults, into)
}

// metadataOf decodes an object's metadata; nil if it is something else, or not understood.
func metadataOf(data []byte) *metav1.PartialObjectMetadata {
	body, ok := bytes.CutPrefix(data, prefix)
	if !ok {
		return nil
	}
	var raw []byte
	known := false
	if !messages(body, func(field protowire.Number, value []byte) bool {
		switch field {
		case fieldTypeMeta:
			known = typeIs(value, partialKind)
		case fieldRaw:
			raw = value
		case fieldEncoding, fieldContentType:
			return len(value) == 0
		}
		return true
	}) || !known {
		return nil
	}
	return partial(raw)
}

// typeIs tells whether a runtime.TypeMeta is that of a kind of metadata.
func typeIs(data, kind []byte) bool {
	var isVersion, isKind []byte
	return messages(data, func(field protowire.Number, value []byte) bool {
		switch field {
		case fieldAPIVersion:
			isVersion = value
		case fieldKind:
			isKind = value
		}
		return true
	}) && bytes.Equal(isVersion, apiVersion) && bytes.Equal(isKind, kind)
}

// partial decodes a PartialObjectMetadata; nil if it is not understood.
func partial(data []byte) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	if !messages(data, func(field protowire.Number, value []byte) bool {
		return field != fieldMetadata || decode(value, &m.ObjectMeta)
	}) {
		return nil
	}
	return m
}

// decode hands over to client-go's decoder what is looked at of an object's metadata, by stretches
// of fields that follow each other. Of an object that is being deleted policies are asked, so that
// is all but managedFields; so it is of what has no uid: a bookmark, whose annotations tell where
// the first list ends.
func decode(data []byte, m *metav1.ObjectMeta) bool {
	deleting, named := false, false
	if !fields(data, func(field protowire.Number, begin, end int) bool {
		switch field {
		case fieldDeletionTimestamp:
			deleting = true
		case fieldUID: // it is there even where it is empty
			_, _, tag := protowire.ConsumeTag(data[begin:end])
			uid, _ := protowire.ConsumeBytes(data[begin+tag : end])
			named = len(uid) > 0
		}
		return true
	}) {
		return false
	}
	keep := uint32(always)
	if deleting || !named {
		keep = 1<<fieldManagedFields - 1
	}
	from, to := 0, 0 // the stretch that is to be decoded
	return fields(data, func(field protowire.Number, begin, end int) bool {
		if field > lastField || keep&(1<<field) == 0 {
			return true
		}
		if begin == to {
			to = end
			return true
		}
		ok := m.Unmarshal(data[from:to]) == nil
		from, to = begin, end
		return ok
	}) && m.Unmarshal(data[from:to]) == nil
}

// messages calls f with the fields of a message all of which must have a length and content, until
// one returns false.
func messages(data []byte, f func(field protowire.Number, value []byte) bool) bool {
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 || kind != protowire.BytesType {
			return false
		}
		value, length := protowire.ConsumeBytes(data[n:])
		if length < 0 || !f(field, value) {
			return false
		}
		data = data[n+length:]
	}
	return true
}

// fields calls f with where each field of a message lies, until it returns false.
func fields(data []byte, f func(field protowire.Number, begin, end int) bool) bool {
	for at := 0; at < len(data); {
		field, _, n := protowire.ConsumeField(data[at:])
		if n < 0 || !f(field, at, at+n) {
			return false
		}
		at += n
	}
	return true
}
