package kinds

import corev1 "k8s.io/api/core/v1"

// OfNamespaceController are the conditions of a namespace that only a namespace controller writes, while it empties it.
var OfNamespaceController = []corev1.NamespaceConditionType{
	corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure, corev1.NamespaceDeletionContentFailure,
	corev1.NamespaceContentRemaining, corev1.NamespaceFinalizersRemaining,
}
