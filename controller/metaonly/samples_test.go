package metaonly

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// theirs is how client-go reads protobuf.
func theirs(t testing.TB) runtime.SerializerInfo {
	serializers := metainternalversionscheme.Codecs.WithoutConversion().SupportedMediaTypes()
	info, ok := runtime.SerializerInfoForMediaType(serializers, runtime.ContentTypeProtobuf)
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

// dropped is an object without its type, which a list does not send with each.
func dropped(m metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	m.TypeMeta = metav1.TypeMeta{}
	return &m
}

// usual is an object like many.
func usual() *metav1.PartialObjectMetadata {
	written := metav1.NewTime(time.Unix(1_700_000_000, 0))
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "web-5d8f7c9b6-x2x7k", GenerateName: "web-5d8f7c9b6-", Namespace: "shop",
		UID: "8a1f0e1e-6f0b-4a55-9a3d-5b7f1f0f7c11", ResourceVersion: "123456789",
		Generation: 7, CreationTimestamp: written,
		Labels: map[string]string{"app": "web", "pod-template-hash": "5d8f7c9b6", "tier": "front"},
		Annotations: map[string]string{
			"kubectl.kubernetes.io/restartedAt": "2026-01-02T03:04:05Z", "example.com/config": strings.Repeat("c", 300),
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d8f7c9b6", UID: "0c9ab6f0-7c0f-4d53-8a51-7ce7d8a1b1aa",
			Controller: new(true), BlockOwnerDeletion: new(true),
		}},
		Finalizers: []string{"example.com/hold"},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate,
			APIVersion: "v1", Time: &written, FieldsType: "FieldsV1",
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
		"bookmark": {ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "5", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}},
		"bare":    {ObjectMeta: metav1.ObjectMeta{Name: "bare", UID: "u"}},
		"nothing": {},
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

// frameOf is a frame of a watch, as the API server sends it.
func frameOf(t testing.TB, word string, obj runtime.Object) []byte {
	var b bytes.Buffer
	e := &metav1.WatchEvent{Type: word, Object: runtime.RawExtension{Raw: sent(t, obj)}}
	if err := theirs(t).StreamSerializer.Encode(e, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
