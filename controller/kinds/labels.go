package kinds

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MostLabels bounds the kinds that counters have labels for: kinds come and go, but series stay.
const MostLabels = 1000

// otherKinds stands for all kinds beyond MostLabels.
var otherKinds = schema.GroupResource{Resource: "other"}

// Labels are the kinds that counters have labels for. The zero value is ready.
type Labels struct {
	mu    sync.Mutex
	known map[schema.GroupResource]struct{}
}

// Of returns a kind as counters have it: the kind itself, or one that stands for all beyond
// MostLabels.
func (k *Labels) Of(kind schema.GroupResource) schema.GroupResource {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.known[kind]; ok {
		return kind
	}
	if len(k.known) >= MostLabels {
		return otherKinds
	}
	if k.known == nil {
		k.known = map[schema.GroupResource]struct{}{}
	}
	k.known[kind] = struct{}{}
	return kind
}
