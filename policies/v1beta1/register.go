package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is weir.dev/v1beta1.
var GroupVersion = schema.GroupVersion{Group: "weir.dev", Version: "v1beta1"}

// AddToScheme makes a scheme know the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&DeletionPolicy{}, &DeletionPolicyList{},
		&OwnerReferencePolicy{}, &OwnerReferencePolicyList{},
		&DrainPolicy{}, &DrainPolicyList{},
		&HeldCollection{}, &HeldCollectionList{},
		&DeletedTree{}, &DeletedTreeList{},
		&ArchiveChunk{}, &ArchiveChunkList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
