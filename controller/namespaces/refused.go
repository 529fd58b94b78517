package namespaces

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

const (
	// refusedPause is how long an object whose delete was refused is left alone. It doubles each time
	// up to mostRefusedPause. Passes that nothing wakes are soon further apart than that.
	refusedPause     = time.Second
	mostRefusedPause = 5 * time.Second
)

// refused holds the objects whose delete was refused. Each object that goes wakes the drain of its
// namespace; those that were refused are not to be asked for each time.
type refused map[types.UID]refusal

type refusal struct {
	version string // resourceVersion at the refusal: after a change the delete may be accepted
	why     string
	until   time.Time
	pause   time.Duration
}

// still reports whether an object is not to be deleted yet, and why.
func (r refused) still(ref graph.Ref) (why string, still bool) {
	o, ok := r[ref.UID]
	return o.why, ok && o.version == ref.ResourceVersion && time.Now().Before(o.until)
}

// note records that an object's delete was refused.
func (r refused) note(ref graph.Ref, why string) {
	pause := max(refusedPause, min(2*r[ref.UID].pause, mostRefusedPause))
	r[ref.UID] = refusal{ref.ResourceVersion, why, time.Now().Add(pause), pause}
}
