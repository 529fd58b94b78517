package policies

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// Weir collects only where its canary says so in every respect: who believes it wrongly lets dependents be deleted that are to be kept.
func TestCollectorIsKnownByTheCanary(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*metav1.ObjectMeta)
		want   Collector
	}{
		"it stands":               {func(*metav1.ObjectMeta) {}, WeirCollects},
		"not for long enough":     {func(m *metav1.ObjectMeta) { m.CreationTimestamp = metav1.NewTime(now.Add(-CanaryStands + time.Second)) }, OthersCollect},
		"it is being deleted":     {func(m *metav1.ObjectMeta) { m.DeletionTimestamp = &metav1.Time{Time: now} }, OthersCollect},
		"beside the built-in one": {func(m *metav1.ObjectMeta) { m.Labels = nil }, OthersCollect},
		"nobody would delete it":  {func(m *metav1.ObjectMeta) { m.OwnerReferences = nil }, OthersCollect},
		"it has another owner":    {func(m *metav1.ObjectMeta) { m.OwnerReferences[0].UID = "u" }, OthersCollect},
		"it has another owner, too": {func(m *metav1.ObjectMeta) {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{UID: "u"})
		}, OthersCollect},
		"another object": {func(m *metav1.ObjectMeta) { m.Name = "x" }, OthersCollect},
	} {
		m := metav1.ObjectMeta{Name: v1alpha1.CollectorCanary, CreationTimestamp: metav1.NewTime(now.Add(-CanaryStands)),
			Labels: map[string]string{v1alpha1.CollectsLabel: "true"}, OwnerReferences: []metav1.OwnerReference{{UID: v1alpha1.CollectorCanaryOwner}}}
		c.change(&m)
		if got := CollectorBy(&m, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
