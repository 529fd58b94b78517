package brake

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// counted is with how much deletions go that were asked for.
type counted map[types.UID]int

// item is an object that waits for a decision, and with how much it goes, if that is decided about,
// too.
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

// sets know what the digests stand for that people may have read. A person needs time to decide,
// and meanwhile objects come and go: with them the digest changes, but what was held when it was
// read is held still. So each object is known with the count at which it came in, and each digest
// with the last count at which it was that of all: it stands for what came in by then, and is still
// there.
type sets struct {
	void    string       // a digest by which a person had decided before: it is not to count, so digests are others than they were then
	now     map[item]int // what is held, and since which count
	digests map[string]int
	order   []string // of digests, the newest last
	count   int
}

// mostDigests bounds the digests that are known, of which there is one in five seconds at most:
// over an hour of them.
const mostDigests = 1000

func newSets(void string) *sets {
	return &sets{void: void, now: map[item]int{}, digests: map[string]int{}}
}

// take takes in what is held, by sorted uids, and returns its digest, "" for nothing.
func (s *sets) take(uids []types.UID, with counted) string {
	if len(uids) == 0 {
		clear(s.now)
		return ""
	}
	s.count++
	h := sha256.New()
	if s.void != "" {
		fmt.Fprintln(h, "after", s.void)
	}
	now := make(map[item]int, len(uids))
	for _, uid := range uids {
		i := item{uid, with[uid]}
		if now[i] = s.count; s.now[i] != 0 {
			now[i] = s.now[i]
		}
		if fmt.Fprintln(h, uid); with != nil {
			fmt.Fprintln(h, i.counted)
		}
	}
	s.now = now
	digest := hex.EncodeToString(h.Sum(nil))[:16]
	if _, known := s.digests[digest]; !known {
		s.order = append(s.order, digest)
	}
	s.digests[digest] = s.count
	if len(s.order) > mostDigests {
		delete(s.digests, s.order[0])
		s.order = s.order[1:]
	}
	return digest
}

// of is what a digest stands for, of what is held still.
func (s *sets) of(digest string) (all []item) {
	at := s.digests[digest] // 0: no person can have read it, or it is too long ago
	for i, since := range s.now {
		if since <= at {
			all = append(all, i)
		}
	}
	return all
}
