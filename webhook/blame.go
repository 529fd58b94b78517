package webhook

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies"
)

const (
	// blameEvery is how often a policy is told of at most that it could not be judged.
	blameEvery = time.Minute
	// mostBlame is how much of an error is told, in bytes.
	mostBlame = 256
)

// blamer says on policies that they could not be judged about a request: under Ignore the request
// passed, and who wrote the policy would not know. No answer waits for it.
//
// A review is hearsay, and so is the error that it brings about: neither the object nor the user is
// told, an error is cut off, and it is an Event, which proves nothing. The status of a policy,
// which people and machines go by, is not written by a process that whoever reaches its port can
// talk to; nor does the controller copy these Events there, since whoever may create Events would
// then write in it.
type blamer struct {
	tell   func(policy map[string]any, message string)
	object func(policies.PolicyKey) map[string]any // nil: it is a file, or gone
	recent *cache.Expiring                         // policies that were told of less than blameEvery ago
}

// newBlamer makes one that tells nothing if tell is nil.
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

// bounded is an error in one line, and no more of it than mostBlame.
func bounded(text string) string { return words.Cut(words.Printable(text), mostBlame) }
