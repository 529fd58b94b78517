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

// CanaryStands is how old a canary must be before no other collector is believed to work, if it
// does not say so itself. The built-in collector deletes it within a second, except in large
// clusters when it is busy.
const CanaryStands = 10 * time.Second

// CollectorBy returns who collects, by the metadata of the ConfigMap v1beta1.CollectorCanary and
// the API server's time: any other collector deletes it. It returns CollectorUnknown and an error
// if the canary is malformed.
func CollectorBy(canary *metav1.ObjectMeta, now time.Time) (Collector, error) {
	garbage := len(canary.OwnerReferences) == 1 && canary.OwnerReferences[0].UID == v1beta1.CollectorCanaryOwner &&
		canary.DeletionTimestamp == nil
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

// rounding is how much earlier than the creation a creationTimestamp may be.
const rounding = time.Second

// canaryTime returns how old a canary must be. One of an earlier version does not say; CanaryStands
// applies.
func canaryTime(canary *metav1.ObjectMeta) (time.Duration, error) {
	said, ok := canary.Annotations[v1beta1.CanaryTimeAnnotation]
	if !ok {
		return CanaryStands - rounding, nil
	}
	must, err := time.ParseDuration(said)
	if err != nil || must <= 0 {
		return 0, fmt.Errorf("annotation %s %.40q: must be a duration of more than 0, such as 10s; Weir's controller "+
			"writes it again while it collects", v1beta1.CanaryTimeAnnotation, said)
	}
	return must, nil
}
