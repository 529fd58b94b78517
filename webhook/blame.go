package webhook

import (
	"strings"
	"sync"
	"time"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies"
)

const (
	// blameEvery is how often a policy is told of at most that it could not be judged.
	blameEvery = time.Minute
	// mostBlamed is how many policies are told of in that time.
	mostBlamed = 1000
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

	mu     sync.Mutex
	recent map[policies.PolicyKey]*string // reported less than blameEvery ago, and the last error since; nil: none
}

// newBlamer makes one that tells nothing if tell is nil.
func newBlamer(tell func(map[string]any, string), object func(policies.PolicyKey) map[string]any) *blamer {
	return &blamer{tell: tell, object: object, recent: map[policies.PolicyKey]*string{}}
}

func (b *blamer) failed(errs []policies.PolicyError) {
	if b.tell == nil {
		return
	}
	for _, e := range errs {
		if b.first(e) {
			b.say(e.Policy, e.Err)
		}
	}
}

// first tells whether an error is to be told now. Else the last one is, when it is time again.
func (b *blamer) first(e policies.PolicyError) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, reported := b.recent[e.Policy]; reported {
		b.recent[e.Policy] = &e.Err
		return false
	}
	if len(b.recent) >= mostBlamed {
		return false
	}
	b.recent[e.Policy] = nil
	time.AfterFunc(blameEvery, func() { b.again(e.Policy) })
	return true
}

// again tells the last error since, if there was one.
func (b *blamer) again(key policies.PolicyKey) {
	b.mu.Lock()
	last := b.recent[key]
	if last == nil {
		delete(b.recent, key)
	} else {
		b.recent[key] = nil
		time.AfterFunc(blameEvery, func() { b.again(key) })
	}
	b.mu.Unlock()
	if last != nil {
		b.say(key, *last)
	}
}

func (b *blamer) say(key policies.PolicyKey, why string) {
	if policy := b.object(key); policy != nil {
		b.tell(policy, "could not be evaluated for a request, about which failurePolicy decides: "+bounded(why))
	}
}

// bounded is an error in one line, and no more of it than mostBlame.
func bounded(text string) string {
	var b strings.Builder
	for _, r := range text {
		shown := words.Printable(string(r))
		if b.Len()+len(shown) > mostBlame {
			return b.String() + "…"
		}
		b.WriteString(shown)
	}
	return b.String()
}
