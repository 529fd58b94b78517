package v1beta1

// What Weir writes on the objects of others.
const (
	// Finalizer holds an object until Weir has carried out the propagation that its policy asks for.
	Finalizer = "weir.dev/propagation"
	// PropagationAnnotation says how its object is deleted, where a policy reads it
	// (propagation.annotation): Background, Foreground or Orphan.
	PropagationAnnotation = "weir.dev/propagation"
	// ArmedAtAnnotation is the time of a Finalizer that was put on an object that existed already. A DELETE that was under
	// way by then does not honour it (RB 6.24), so for a while no DELETE of the object is let through.
	ArmedAtAnnotation = "weir.dev/armed-at"
	// ConfirmDeleteAnnotation confirms a delete that a policy wants confirmed. Its value is the object's uid, so that
	// neither a manifest applied again nor a copy of it confirms anything.
	ConfirmDeleteAnnotation = "weir.dev/confirm-delete"
	// ConfirmedAnnotation is what Weir's webhook writes beside it: when it was written, and by whom,
	// with a seal by which this is known to be Weir's, about this object.
	ConfirmedAnnotation = "weir.dev/confirmed"
	// KeptAnnotation is on an object that was garbage, and that a policy protects or a person keeps:
	// why Weir released it from its owners instead.
	KeptAnnotation = "weir.dev/kept"
	// RetainedAnnotation is on a PersistentVolume that an archive has stay: POLICY/TREE/UID, its
	// reclaim policy before, and where its claim was recorded, and with which uid.
	RetainedAnnotation = "weir.dev/retained"
	// RestoredAnnotation is on an object that was restored: TREE/UID, where it was recorded, and the
	// uid that it had there.
	RestoredAnnotation = "weir.dev/restored"
	// DrainAnnotation is, on a terminating Namespace, the name of the wave that drains now.
	DrainAnnotation = "weir.dev/drain"
	// DrainSinceAnnotation is, on a terminating Namespace, when that wave began, as RFC 3339: what the wave's timeout is
	// measured from. With a time before the namespace was deleted neither annotation counts. When all waves are over,
	// DrainAnnotation stays at the last, and this one moves on: so nothing is held any more, and the namespace
	// controller, which looks again when a Namespace changes, lets the namespace go.
	DrainSinceAnnotation = "weir.dev/drain-since"
	// DrainSealAnnotation is, on a terminating Namespace, by what is known that Weir wrote these two.
	DrainSealAnnotation = "weir.dev/drain-seal"
	// CanaryLabel is, with the value "true", on the one object whose dry-run deletes the API server brings to Weir so that
	// it is known whether it does.
	CanaryLabel = "weir.dev/canary"
	// InProcessLabel is on the ValidatingAdmissionPolicies, and their bindings, that Weir writes from policies.
	InProcessLabel = "weir.dev/in-process"
	// CollectorCanary is the name of a ConfigMap in Weir's namespace, whose only owner, that with the
	// uid CollectorCanaryOwner, never existed. Any garbage collector but Weir deletes it, which is how
	// Weir finds out whether one works.
	CollectorCanary      = "weir-collector-canary"
	CollectorCanaryOwner = "00000000-0000-4000-8000-000000000000"
	// DeletedOwners is the name of a ConfigMap in Weir's namespace, in which a Weir that collects
	// records which owners it saw deleted while objects were left of them.
	DeletedOwners = "weir-deleted-owners"
	// CollectsLabel is, with the value "true", on that ConfigMap where it was made by a Weir that
	// collects by itself, and not beside the built-in collector.
	CollectsLabel = "weir.dev/collects"
	// CanaryTimeAnnotation is, beside that label, how long the ConfigMap must stand before Weir
	// collects, as a Go duration.
	CanaryTimeAnnotation = "weir.dev/canary-time"
	// HeldRequested is what the names of HeldCollections begin with that hold deletions which were
	// asked for. The kind of the deleted objects follows.
	HeldRequested = "requested."
	// ReasonCollectionRefused is that of one on an object that is to be deleted or changed, and whose
	// request is refused; ReasonDeletionHeld of one on an object whose deletion waits.
	ReasonCollectionRefused = "CollectionRefused"
	ReasonDeletionHeld      = "DeletionHeld"
	// ReasonKept is that of one on an object that carries KeptAnnotation, said when it got it.
	ReasonKept = "Kept"
	// CauseProtected is the cause, in the details of a refusal by Weir's webhook, that a policy
	// protects the object from the collectors.
	CauseProtected = "weir.dev/protected"
	// ReasonCascade is the reason of an Event on an object, which may be gone, that says what was collected because of it.
	ReasonCascade = "Cascade"
	// ReasonPolicyError is that of the webhook's Event on a policy that could not be judged about a request.
	ReasonPolicyError = "PolicyError"
	// CollectedAnnotation is, on an Event with ReasonCascade, a JSON list of the first objects that were collected.
	CollectedAnnotation = "weir.dev/collected"
)
