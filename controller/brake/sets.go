package brake

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// item is an object that waits for a decision, with how many objects it goes if the decision is
// about that, too; else 0.
type item struct {
	uid     types.UID
	counted int
}

func uidsOf(items []item) []types.UID {
	uids := make([]types.UID, len(items))
	for i := range items {
		uids[i] = items[i].uid
	}
	return uids
}

// sets maps digests that people may have read to what was held then. A person needs time to decide.
// Meanwhile objects come and go, and the digest changes, but what was held then and still is can be
// decided about. So each object is kept with the count at which it was first held, and each digest
// with the last count at which it was current. A digest stands for the objects that were held by
// its count, and still are.
type sets struct {
	void    string       // digest of a decision made before; it must not count, so it changes all digests
	now     map[item]int // what is held, and at which count it was first
	digests map[string]int
	count   int
}

// mostDigests bounds the digests that are kept. There is one in five seconds at most, so they are
// forgotten once an hour.
const mostDigests = 1000

func newSets(void string) *sets {
	return &sets{void: void, now: map[item]int{}, digests: map[string]int{}}
}

// take sets what is held, sorted by uid, and returns its digest; "" for nothing.
func (s *sets) take(items []item) string {
	if len(items) == 0 {
		clear(s.now)
		return ""
	}
	s.count++
	h := sha256.New()
	if s.void != "" {
		fmt.Fprintln(h, "after", s.void)
	}
	now := make(map[item]int, len(items))
	for _, i := range items {
		now[i] = cmp.Or(s.now[i], s.count)
		if fmt.Fprintln(h, i.uid); i.counted != 0 {
			fmt.Fprintln(h, i.counted)
		}
	}
	s.now = now
	digest := hex.EncodeToString(h.Sum(nil))[:16]
	if len(s.digests) >= mostDigests {
		clear(s.digests)
	}
	s.digests[digest] = s.count
	return digest
}

// of returns what a digest stands for and is still held.
func (s *sets) of(digest string) (all []item) {
	at := s.digests[digest] // 0: nobody can have read it, or it is too long ago
	for i, since := range s.now {
		if since <= at {
			all = append(all, i)
		}
	}
	return all
}
