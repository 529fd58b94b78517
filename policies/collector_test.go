package policies

import (
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// Weir collects only where its canary says so in every respect: who believes it wrongly lets
// dependents be deleted that are to be kept.
func TestCollectorIsKnownByTheCanary(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*metav1.ObjectMeta)
		want   Collector
	}{
		"it stands":               {func(*metav1.ObjectMeta) {}, WeirCollects},
		"not for long enough":     {func(m *metav1.ObjectMeta) { m.CreationTimestamp = metav1.NewTime(now.Add(-9 * time.Second)) }, OthersCollect},
		"it is being deleted":     {func(m *metav1.ObjectMeta) { m.DeletionTimestamp = &metav1.Time{Time: now} }, OthersCollect},
		"beside the built-in one": {func(m *metav1.ObjectMeta) { m.Labels = nil }, OthersCollect},
		"nobody would delete it":  {func(m *metav1.ObjectMeta) { m.OwnerReferences = nil }, OthersCollect},
		"it has another owner":    {func(m *metav1.ObjectMeta) { m.OwnerReferences[0].UID = "u" }, OthersCollect},
		"it has another owner, too": {func(m *metav1.ObjectMeta) {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{UID: "u"})
		}, OthersCollect},
		"another object": {func(m *metav1.ObjectMeta) { m.Name = "x" }, OthersCollect},
	} {
		m := metav1.ObjectMeta{Name: v1beta1.CollectorCanary, CreationTimestamp: metav1.NewTime(now.Add(-11 * time.Second)),
			Annotations: map[string]string{v1beta1.CanaryTimeAnnotation: "10s"},
			Labels:      map[string]string{v1beta1.CollectsLabel: "true"}, OwnerReferences: []metav1.OwnerReference{{UID: v1beta1.CollectorCanaryOwner}}}
		c.change(&m)
		if got, err := CollectorBy(&m, now); got != c.want || err != nil {
			t.Errorf("%s: %v (%v), want %v", name, got, err, c.want)
		}
	}
}

// The canary says how long it must stand: until then Weir collects nothing, and another collector
// may begin with what is to be kept.
func TestCollectorIsKnownOnceTheCanaryStandsForAsLongAsItSays(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		says string
		age  time.Duration
		want Collector
	}{
		"it must stand for longer":               {"1m0s", time.Minute, OthersCollect},
		"it has, and for what is rounded":        {"1m0s", time.Minute + time.Second, WeirCollects},
		"it need not stand for as long":          {"3s", 4 * time.Second, WeirCollects},
		"it need hardly stand, and is young":     {"100ms", time.Second, OthersCollect},
		"it need hardly stand":                   {"100ms", 2 * time.Second, WeirCollects},
		"nothing is said":                        {"", time.Hour, CollectorUnknown},
		"no duration":                            {"soon", time.Hour, CollectorUnknown},
		"no unit":                                {"60", time.Hour, CollectorUnknown},
		"no time":                                {"0s", time.Hour, CollectorUnknown},
		"less":                                   {"-1m", time.Hour, CollectorUnknown},
		"more than a duration can be":            {"999999999h", time.Hour, CollectorUnknown},
		"all that a duration can be":             {"2562047h47m16.854775807s", time.Hour, OthersCollect},
		"no duration, on one that is also young": {"soon", 0, CollectorUnknown},
	} {
		m := metav1.ObjectMeta{Name: v1beta1.CollectorCanary, CreationTimestamp: metav1.NewTime(now.Add(-c.age)),
			Labels: map[string]string{v1beta1.CollectsLabel: "true"}, OwnerReferences: []metav1.OwnerReference{{UID: v1beta1.CollectorCanaryOwner}}}
		m.Annotations = map[string]string{v1beta1.CanaryTimeAnnotation: c.says}
		got, err := CollectorBy(&m, now)
		if got != c.want || (err != nil) != (c.want == CollectorUnknown) || err != nil && !strings.Contains(err.Error(), v1beta1.CanaryTimeAnnotation+" "+strconv.Quote(c.says)+": must be a duration") {
			t.Errorf("%s: %v (%v), want %v", name, got, err, c.want)
		}
		m.Labels = nil
		if got, err := CollectorBy(&m, now); got != OthersCollect || err != nil {
			t.Errorf("%s, beside the built-in one: %v (%v)", name, got, err)
		}
	}
}
