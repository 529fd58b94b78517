package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionDurable is True of a DeletedTree once everything that goes with its root is recorded.
// Before that nothing is restored from it.
const ConditionDurable = "Durable"

// Reasons of ConditionDurable.
const (
	// ReasonRecorded: the tree is complete, but for what status.missed names.
	ReasonRecorded = "Recorded"
	// ReasonRecording: the objects are still being read and written.
	ReasonRecording = "Recording"
)

// Archive records an object that is deleted, and all that is deleted with it, in a DeletedTree. The
// object stays, terminating, until the record is durable. What cannot be recorded is held with
// failurePolicy Fail, and let go with Ignore. Of several policies the one with the highest priority
// applies. It applies where propagation applies, and to Namespaces: nothing in one is deleted
// before everything in it is recorded. It does not apply to CustomResourceDefinitions.
type Archive struct {
	// retentionSeconds is for how long the tree is kept, between a minute and a year.
	//
	// +optional
	// +kubebuilder:default=604800
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=31536000
	RetentionSeconds int64 `json:"retentionSeconds,omitempty"`

	// exclude are resources of which nothing is recorded, though they are deleted. Left out,
	// everything is recorded but what controllers of Kubernetes keep for themselves: Events,
	// Leases, Endpoints and EndpointSlices.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Exclude []ResourceRule `json:"exclude,omitempty"`

	// volumes is what becomes of the volumes of claims that are recorded. Leave: what their reclaim
	// policy says. Retain: they stay, with their data, as long as the tree is kept; a claim that is
	// restored is bound to its volume again, and what is not comes to what its reclaim policy said.
	//
	// +optional
	// +kubebuilder:default=Leave
	Volumes VolumeRetention `json:"volumes,omitempty"`
}

// VolumeRetention is what becomes of the volumes of recorded claims.
//
// +kubebuilder:validation:Enum=Leave;Retain
type VolumeRetention string

const (
	// LeaveVolumes leaves them to their reclaim policy.
	LeaveVolumes VolumeRetention = "Leave"
	// RetainVolumes has them stay as long as the tree is kept.
	RetainVolumes VolumeRetention = "Retain"
)

// DeletedTree is what was deleted with one object: the object, and all that it owned, or that was
// in it. Its objects are in ArchiveChunks, sealed with a key that only a Secret in Weir's namespace
// unwraps.
//
// Weir writes it. Who deletes it purges the tree: the key is gone with it, and without the key the
// chunks are noise, also those that are not collected yet. Backups of etcd may still have both.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=deltree,categories=weir
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.root.kind`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.root.namespace`
// +kubebuilder:printcolumn:name="Object",type=string,JSONPath=`.spec.root.name`
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects`
// +kubebuilder:printcolumn:name="Deleted",type=date,JSONPath=`.spec.deletionTime`
// +kubebuilder:printcolumn:name="Durable",type=string,JSONPath=`.status.conditions[?(@.type=="Durable")].status`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expirationTime`,priority=1
// +kubebuilder:printcolumn:name="Bytes",type=integer,JSONPath=`.status.bytes`,priority=1
// +kubebuilder:printcolumn:name="Missed",type=integer,JSONPath=`.status.missedObjects`,priority=1
type DeletedTree struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what was deleted, and what seals it.
	//
	// +required
	Spec DeletedTreeSpec `json:"spec,omitzero"`

	// status is what was recorded of it.
	//
	// +optional
	Status DeletedTreeStatus `json:"status,omitempty"`
}

// DeletedTreeSpec is what was deleted, and what seals it.
type DeletedTreeSpec struct {
	// root is the object that was deleted.
	//
	// +required
	Root DeletedRoot `json:"root,omitzero"`

	// deletionTime is when the root was deleted.
	//
	// +required
	DeletionTime *metav1.Time `json:"deletionTime,omitempty"`

	// expirationTime is when Weir purges the tree. Who may edit it keeps the tree longer.
	//
	// +required
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`

	// key is what the chunks are sealed with, wrapped by the archive's key.
	//
	// +required
	// +kubebuilder:validation:MaxLength=256
	Key []byte `json:"key,omitempty"`
}

// DeletedRoot is the object that was deleted.
type DeletedRoot struct {
	// group is the API group of its kind, empty for the core group.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// version is the API version in which it was read.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version,omitempty"`

	// resource is its kind as in URLs, as in "deployments".
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Resource string `json:"resource,omitempty"`

	// kind is its kind.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// namespace is the namespace that it was in, empty for what is in none.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name is its name.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// uid is its uid, which no other object ever has.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
}

// DeletedTreeStatus is what was recorded of a tree.
type DeletedTreeStatus struct {
	// conditions say whether the tree is complete (Durable).
	//
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// objects is how many objects were recorded.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Objects int64 `json:"objects,omitempty"`

	// kinds are the same, by kind, sorted by name.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	Kinds []DeletedKind `json:"kinds,omitempty"`

	// chunks is how many ArchiveChunks the tree has.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Chunks int32 `json:"chunks,omitempty"`

	// bytes is how large they are together.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Bytes int64 `json:"bytes,omitempty"`

	// bucketPrefix is where the chunks are in the bucket that the Secret weir-archive-bucket names,
	// once they were shipped there.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	BucketPrefix string `json:"bucketPrefix,omitempty"`

	// missedObjects is how many objects went with the root that were not recorded, or not as they
	// were in the end.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MissedObjects int64 `json:"missedObjects,omitempty"`

	// missed are the first of them.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	Missed []MissedObject `json:"missed,omitempty"`
}

// DeletedKind is how many objects of a kind were recorded.
type DeletedKind struct {
	// resource is the kind, as in "replicasets.apps".
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Resource string `json:"resource,omitempty"`

	// objects is how many.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Objects int64 `json:"objects,omitempty"`
}

// MissedObject is an object that was not recorded, or not as it was in the end.
type MissedObject struct {
	// object is its kind, namespace and name, as in "replicasets.apps shop/web".
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=640
	Object string `json:"object,omitempty"`

	// why says why.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Why string `json:"why,omitempty"`
}

// DeletedTreeList is a list of DeletedTree.
//
// +kubebuilder:object:root=true
type DeletedTreeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DeletedTree `json:"items"`
}

// ArchiveChunk is a part of a DeletedTree, which owns it: objects, compressed and sealed.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=weir
// +kubebuilder:printcolumn:name="Tree",type=string,JSONPath=`.spec.tree`
// +kubebuilder:printcolumn:name="Sequence",type=integer,JSONPath=`.spec.sequence`
// +kubebuilder:printcolumn:name="Last",type=boolean,JSONPath=`.spec.last`
type ArchiveChunk struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the content.
	//
	// +required
	Spec ArchiveChunkSpec `json:"spec,omitzero"`
}

// ArchiveChunkSpec is the content of a chunk.
type ArchiveChunkSpec struct {
	// tree is the name of the DeletedTree.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Tree string `json:"tree,omitempty"`

	// sequence is the chunk's place in the tree, from 0.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Sequence *int32 `json:"sequence,omitempty"`

	// last is true for the last chunk of the tree.
	//
	// +optional
	Last *bool `json:"last,omitempty"`

	// sealed is the content, 1 MiB at most before it is encoded. The tree, the sequence and whether
	// it is the last are sealed with it.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1398104
	Sealed []byte `json:"sealed,omitempty"`
}

// ArchiveChunkList is a list of ArchiveChunk.
//
// +kubebuilder:object:root=true
type ArchiveChunkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ArchiveChunk `json:"items"`
}
