package webhook

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies"
)

const (
	// blameEvery is the least time between two reports about a policy.
	blameEvery = time.Minute
	// mostBlame is how much of an error is reported, in bytes.
	mostBlame = 256
)

// blamer reports, on policies, that they could not be judged about a request: under Ignore the
// request passed, and the author of the policy would not know. No answer waits for it.
//
// A review is hearsay, and so is the error that it causes. So the report names neither the object
// nor the user, cuts the error off, and is an Event, which proves nothing. The status of a policy,
// which people and machines rely on, is not written by a process that anybody who reaches its port
// can talk to. Nor does the controller copy these Events there, since a user who may create Events
// would then write in it.
type blamer struct {
	tell   func(policy map[string]any, message string)
	object func(policies.PolicyKey) map[string]any // nil: it is a file, or gone
	recent *cache.Expiring                         // policies that were told of less than blameEvery ago
}

// newBlamer returns a blamer, which reports nothing if tell is nil.
func newBlamer(tell func(map[string]any, string), object func(policies.PolicyKey) map[string]any) *blamer {
	return &blamer{tell: tell, object: object, recent: cache.NewExpiring()}
}

func (b *blamer) failed(errs []policies.PolicyError) {
	if b.tell == nil {
		return
	}
	for _, e := range errs {
		if _, told := b.recent.Get(e.Policy); told {
			continue
		}
		b.recent.Set(e.Policy, nil, blameEvery)
		if policy := b.object(e.Policy); policy != nil {
			b.tell(policy, "could not be evaluated for a request, about which failurePolicy decides: "+bounded(e.Err))
		}
	}
}

// bounded returns an error in one line, of mostBlame at most.
func bounded(text string) string { return words.Cut(words.Printable(text), mostBlame) }
