package policies

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// Collector says who collects the garbage of a cluster.
type Collector uint8

// The zero value is the safe one: it may be the built-in collector, which begins with a foreground
// deletion as soon as it sees it.
const (
	CollectorUnknown Collector = iota
	// WeirCollects, and no other collector: a deletion is held until dependents that are to be kept
	// are released.
	WeirCollects
	OthersCollect
)

// CollectorBy returns who collects, by the metadata of the ConfigMap v1beta1.CollectorCanary and
// the API server's time: any other collector deletes it. It returns CollectorUnknown and an error
// if the canary is malformed.
func CollectorBy(canary *metav1.ObjectMeta, now time.Time) (Collector, error) {
	garbage := len(canary.OwnerReferences) == 1 && canary.OwnerReferences[0].UID == v1beta1.CollectorCanaryOwner &&
		canary.DeletionTimestamp == nil
	if !garbage || canary.Name != v1beta1.CollectorCanary || canary.Labels[v1beta1.CollectsLabel] != "true" {
		return OthersCollect, nil
	}
	said := canary.Annotations[v1beta1.CanaryTimeAnnotation]
	must, err := time.ParseDuration(said)
	if err != nil || must <= 0 {
		return CollectorUnknown, fmt.Errorf("annotation %s %.40q: must be a duration of more than 0, such as 10s; Weir's "+
			"controller writes it again while it collects", v1beta1.CanaryTimeAnnotation, said)
	}
	if now.Sub(canary.CreationTimestamp.Time)-rounding < must {
		return OthersCollect, nil
	}
	return WeirCollects, nil
}

// rounding is how much earlier than the creation a creationTimestamp may be.
const rounding = time.Second
