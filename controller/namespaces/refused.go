package namespaces

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

const (
	// refusedPause is how long an object whose delete was refused is left alone, each time twice as
	// long, up to mostRefusedPause. Passes that nothing wakes are further apart soon.
	refusedPause     = time.Second
	mostRefusedPause = 5 * time.Second
)

// refused are objects whose delete was refused. A namespace is looked at again with each object in
// it that goes: whoever refuses others is not to be asked each time.
type refused map[types.UID]refusal

type refusal struct {
	version string // that the object had: one that has changed may not be refused any more
	why     string
	until   time.Time
	pause   time.Duration
}

// still tells why an object is not to be deleted yet, if it is not.
func (r refused) still(ref graph.Ref) (why string, still bool) {
	o, ok := r[ref.UID]
	return o.why, ok && o.version == ref.ResourceVersion && time.Now().Before(o.until)
}

// note takes in that an object's delete was refused.
func (r refused) note(ref graph.Ref, why string) {
	pause := max(refusedPause, min(2*r[ref.UID].pause, mostRefusedPause))
	r[ref.UID] = refusal{ref.ResourceVersion, why, time.Now().Add(pause), pause}
}
