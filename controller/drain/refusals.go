package drain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-dev/weir/controller/words"
)

// Refusals collects why objects of one kind could not be deleted. Each reason is there once, with
// the number of its objects. The zero value is empty.
type Refusals struct {
	reasons map[string]*refusal
	others  int // objects with a reason that was not kept
}

type refusal struct {
	objects int
	text    string // the first in the order of texts
}

// Bounds of the reasons that are reported, and kept.
const (
	mostReasonsReported = 3
	mostReasonsKept     = 100
)

// Add adds why an object could not be deleted. Texts that differ only in the object's name are one
// reason.
func (r *Refusals) Add(name, text string) {
	key := words.Cut(strings.ReplaceAll(text, `"`+name+`"`, `"…"`), MostReason)
	text = words.Cut(text, MostReason)
	switch known := r.reasons[key]; {
	case known != nil:
		known.objects++
		known.text = min(known.text, text)
	case len(r.reasons) == mostReasonsKept:
		r.others++
	default:
		if r.reasons == nil {
			r.reasons = map[string]*refusal{}
		}
		r.reasons[key] = &refusal{1, text}
	}
}

// String returns the reasons, those of most objects first; empty if there are none. The text does
// not depend on the order in which they were added.
func (r *Refusals) String() string {
	all := slices.SortedFunc(maps.Values(r.reasons), func(a, b *refusal) int {
		return cmp.Or(cmp.Compare(b.objects, a.objects), cmp.Compare(a.text, b.text))
	})
	var reported []string
	others := r.others
	for i, reason := range all {
		switch {
		case i >= mostReasonsReported:
			others += reason.objects
		case reason.objects > 1:
			reported = append(reported, fmt.Sprintf("%s (and %d more like it)", reason.text, reason.objects-1))
		default:
			reported = append(reported, reason.text)
		}
	}
	if others > 0 {
		reported = append(reported, fmt.Sprintf("and %d more for other reasons", others))
	}
	return strings.Join(reported, "; ")
}
