package metaonly

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// theirs is how client-go reads protobuf.
func theirs(t testing.TB) runtime.SerializerInfo {
	info, ok := runtime.SerializerInfoForMediaType(metainternalversionscheme.Codecs.WithoutConversion().SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("client-go reads no protobuf")
	}
	return info
}

// sent is an object as the API server sends it.
func sent(t testing.TB, obj runtime.Object) []byte {
	codecs := metainternalversionscheme.Codecs
	var b bytes.Buffer
	if err := codecs.EncoderForVersion(theirs(t).Serializer, metav1.SchemeGroupVersion).Encode(obj, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// dropped is an object without what a watch is not to bring, by the words of New.
func dropped(m metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	m.TypeMeta, m.ManagedFields = metav1.TypeMeta{}, nil
	if m.DeletionTimestamp == nil && m.UID != "" {
		m.ObjectMeta = metav1.ObjectMeta{
			Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion,
			OwnerReferences: m.OwnerReferences, Finalizers: m.Finalizers,
		}
	}
	return &m
}

// usual is an object like many.
func usual() *metav1.PartialObjectMetadata {
	written := metav1.NewTime(time.Unix(1_700_000_000, 0))
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "web-5d8f7c9b6-x2x7k", GenerateName: "web-5d8f7c9b6-", Namespace: "shop", UID: "8a1f0e1e-6f0b-4a55-9a3d-5b7f1f0f7c11", ResourceVersion: "123456789",
		Generation: 7, CreationTimestamp: written,
		Labels:      map[string]string{"app": "web", "pod-template-hash": "5d8f7c9b6", "tier": "front"},
		Annotations: map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-01-02T03:04:05Z", "example.com/config": strings.Repeat("c", 300)},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d8f7c9b6", UID: "0c9ab6f0-7c0f-4d53-8a51-7ce7d8a1b1aa", Controller: new(true), BlockOwnerDeletion: new(true),
		}},
		Finalizers: []string{"example.com/hold"},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &written, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{` + strings.Repeat(`"f:x":{},`, 150) + `}}`),
		}},
	}}
}

// samples are objects of all forms that make a difference.
func samples() map[string]*metav1.PartialObjectMetadata {
	deleted := metav1.NewTime(time.Unix(1_700_000_100, 0))
	change := func(f func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		m := usual()
		f(m)
		return m
	}
	return map[string]*metav1.PartialObjectMetadata{
		"usual": usual(),
		"being deleted": change(func(m *metav1.PartialObjectMetadata) {
			m.DeletionTimestamp, m.DeletionGracePeriodSeconds = &deleted, new(int64(30))
		}),
		"bookmark": {ObjectMeta: metav1.ObjectMeta{ResourceVersion: "5", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}},
		"bare":     {ObjectMeta: metav1.ObjectMeta{Name: "bare", UID: "u"}},
		"nothing":  {},
		"no managedFields between": change(func(m *metav1.PartialObjectMetadata) {
			m.ManagedFields, m.Annotations = nil, nil
		}),
		"many owners": change(func(m *metav1.PartialObjectMetadata) {
			for i := range 300 {
				o := m.OwnerReferences[0]
				o.UID = types.UID(fmt.Sprint("owner-", i))
				m.OwnerReferences = append(m.OwnerReferences, o)
			}
		}),
	}
}

// TestObjectsAreReadAsClientGoReadsThem but for what is dropped.
func TestObjectsAreReadAsClientGoReadsThem(t *testing.T) {
	for name, m := range samples() {
		data := sent(t, m)
		got := metadataOf(data)
		if got == nil {
			t.Errorf("%s: left to client-go", name)
			continue
		}
		if diff := cmp.Diff(dropped(*m), got); diff != "" {
			t.Errorf("%s: (-what is to come, +what came)\n%s", name, diff)
		}
	}
}

// TestWhatIsNotAnObjectIsLeftToClientGo with its result or its error.
func TestWhatIsNotAnObjectIsLeftToClientGo(t *testing.T) {
	whole := sent(t, usual())
	for name, data := range map[string][]byte{
		"status":            sent(t, &metav1.Status{Message: "too old", Code: 410}),
		"cut off":           whole[:len(whole)-20],
		"no prefix":         whole[4:],
		"empty":             nil,
		"prefix alone":      prefix,
		"trailing nonsense": append(bytes.Clone(whole), 0xff),
	} {
		want, wantKind, wantErr := theirs(t).Serializer.Decode(data, nil, nil)
		got, gotKind, err := objects{theirs(t).Serializer}.Decode(data, nil, nil)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || !cmp.Equal(got, want) || !cmp.Equal(gotKind, wantKind) {
			t.Errorf("%s: %v %v %v, and by client-go %v %v %v", name, got, gotKind, err, want, wantKind, wantErr)
		}
		if _, isObject := want.(*metav1.PartialObjectMetadata); isObject {
			t.Errorf("%s: client-go takes it for an object", name)
		}
	}
}

// FuzzDecode: what client-go reads is read here as well, and the same; what it refuses may only be
// read if what is wrong was skipped.
func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		f.Add(sent(f, m))
	}
	real := theirs(f).Serializer
	f.Fuzz(func(t *testing.T, data []byte) {
		got := metadataOf(data)
		obj, _, err := real.Decode(data, nil, nil)
		want, isObject := obj.(*metav1.PartialObjectMetadata)
		switch {
		case got == nil:
		case err == nil && !isObject:
			t.Errorf("client-go reads a %T", obj)
		case err == nil && !cmp.Equal(dropped(*want), got):
			t.Errorf("(-client-go, +here)\n%s", cmp.Diff(dropped(*want), got))
		}
	})
}

// BenchmarkWatchedObject is one frame of a watch, to the object.
func BenchmarkWatchedObject(b *testing.B) {
	frame := frameOf(b, "MODIFIED", usual())
	info := theirs(b)
	for name, s := range map[string]struct{ frames, objects runtime.Decoder }{
		"client-go":     {info.StreamSerializer.Serializer, info.Serializer},
		"metadata-only": {events{info.StreamSerializer.Serializer}, objects{info.Serializer}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var e metav1.WatchEvent
				if _, _, err := s.frames.Decode(frame, nil, &e); err != nil {
					b.Fatal(err)
				}
				if _, err := runtime.Decode(s.objects, e.Object.Raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// frameOf is a frame of a watch, as the API server sends it.
func frameOf(t testing.TB, word string, obj runtime.Object) []byte {
	var b bytes.Buffer
	e := &metav1.WatchEvent{Type: word, Object: runtime.RawExtension{Raw: sent(t, obj)}}
	if err := theirs(t).StreamSerializer.Encode(e, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
