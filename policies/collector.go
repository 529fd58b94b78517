package policies

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// Collector says who collects the garbage of a cluster.
type Collector uint8

// Zero is the safe value: it may be the built-in collector, which begins with a foreground deletion when it sees it.
const (
	CollectorUnknown Collector = iota
	// WeirCollects, and no other collector: a deletion is held until dependents that are to be kept are released.
	WeirCollects
	OthersCollect
)

// CanaryStands is how long a canary must stand before no other collector is believed to work. The built-in one deletes it within a second,
// but for large clusters in which it has much to do.
const CanaryStands = 10 * time.Second

// CollectorBy tells who collects by what the metadata of the ConfigMap v1alpha1.CollectorCanary is now, by the API server's time: any other
// collector deletes it.
func CollectorBy(canary *metav1.ObjectMeta, now time.Time) Collector {
	stands := canary.DeletionTimestamp == nil && now.Sub(canary.CreationTimestamp.Time) >= CanaryStands
	garbage := len(canary.OwnerReferences) == 1 && canary.OwnerReferences[0].UID == v1alpha1.CollectorCanaryOwner
	if stands && garbage && canary.Name == v1alpha1.CollectorCanary && canary.Labels[v1alpha1.CollectsLabel] == "true" {
		return WeirCollects
	}
	return OthersCollect
}
