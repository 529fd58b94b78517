package cmd

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/tools/doctor"
)

// waiting finds the namespaces that no namespace controller has begun to empty. A controller that
// works writes its conditions some seconds after the delete.
func (p *patient) waiting(ctx context.Context) error {
	const begins = 30 * time.Second // at the latest: it waits 5 s (RB 7.7)
	list, err := p.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	found := []doctor.Waiting{}
	for i := range list.Items {
		ns := &list.Items[i]
		if ns.DeletionTimestamp == nil || isBegun(ns) {
			continue
		}
		if age := time.Since(ns.DeletionTimestamp.Time); age > begins {
			found = append(found, doctor.Waiting{Name: ns.Name, For: age})
		}
	}
	p.facts.Waiting = &found
	return nil
}

// ofNamespaceController are the conditions that only a namespace controller writes, while it
// empties a namespace.
var ofNamespaceController = []corev1.NamespaceConditionType{
	corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure,
	corev1.NamespaceDeletionContentFailure,
	corev1.NamespaceContentRemaining, corev1.NamespaceFinalizersRemaining,
}

// isBegun reports whether a namespace controller has begun with a namespace that is being deleted.
// Its first pass writes conditions, and its last removes the finalizer.
func isBegun(ns *corev1.Namespace) bool {
	return !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) ||
		slices.ContainsFunc(ns.Status.Conditions, func(c corev1.NamespaceCondition) bool {
			return slices.Contains(ofNamespaceController, c.Type)
		})
}
