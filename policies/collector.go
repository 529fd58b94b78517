package policies

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// Collector says who collects the garbage of a cluster.
type Collector uint8

// Zero is the safe value: it may be the built-in collector, which begins with a foreground deletion
// when it sees it.
const (
	CollectorUnknown Collector = iota
	// WeirCollects, and no other collector: a deletion is held until dependents that are to be kept
	// are released.
	WeirCollects
	OthersCollect
)

// CanaryStands is how long a canary must stand before no other collector is believed to work, where
// it does not say so itself. The built-in one deletes it within a second, but for large clusters in
// which it has much to do.
const CanaryStands = 10 * time.Second

// CollectorBy tells who collects by what the metadata of the ConfigMap v1beta1.CollectorCanary is
// now, by the API server's time: any other collector deletes it. It is not known, and an error says
// why, where the canary says nothing sensible.
func CollectorBy(canary *metav1.ObjectMeta, now time.Time) (Collector, error) {
	garbage := len(canary.OwnerReferences) == 1 && canary.OwnerReferences[0].UID == v1beta1.CollectorCanaryOwner && canary.DeletionTimestamp == nil
	if !garbage || canary.Name != v1beta1.CollectorCanary || canary.Labels[v1beta1.CollectsLabel] != "true" {
		return OthersCollect, nil
	}
	must, err := canaryTime(canary)
	if err != nil {
		return CollectorUnknown, err
	}
	if now.Sub(canary.CreationTimestamp.Time)-rounding < must {
		return OthersCollect, nil
	}
	return WeirCollects, nil
}

// rounding is how much earlier a creationTimestamp may be than the creation.
const rounding = time.Second

// canaryTime is how long a canary must stand. One of an earlier version does not say it, and is
// believed when it is CanaryStands old.
func canaryTime(canary *metav1.ObjectMeta) (time.Duration, error) {
	said, ok := canary.Annotations[v1beta1.CanaryTimeAnnotation]
	if !ok {
		return CanaryStands - rounding, nil
	}
	must, err := time.ParseDuration(said)
	if err != nil || must <= 0 {
		return 0, fmt.Errorf("annotation %s %.40q: must be a duration of more than 0, such as 10s; Weir's controller writes it again while it collects", v1beta1.CanaryTimeAnnotation, said)
	}
	return must, nil
}
