package brake

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/words"
)

// Limits limit how many objects may be deleted by inference about owners of one kind, within an
// hour, without a person's decision: Most objects; and no more than Objects if they are more than
// Share of all objects of any one kind. The zero value limits nothing.
type Limits struct {
	Objects int
	Share   float64
	Most    int
}

// DefaultLimits are more than the normal life of a cluster leaves behind; see docs/operating.md.
var DefaultLimits = Limits{Objects: 500, Share: 0.1, Most: 5000}

// rounding is less than an object, and more than the rounding error of a share like 0.29.
const rounding = 1e-6

// Off reports whether nothing is limited.
func (l Limits) Off() bool { return l.Most == 0 }

// exceeded returns the limit that counts exceed; "" for none. sizes is how many objects of each
// kind there are, or were.
func (l Limits) exceeded(counts, sizes map[schema.GroupResource]int) string {
	total := 0
	for _, n := range counts {
		total += n
	}
	if total > l.Most {
		return "more than " + words.Count(l.Most, "object", "objects") + " would be deleted"
	}
	if total <= l.Objects {
		return ""
	}
	byName := func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) }
	for _, k := range slices.SortedFunc(maps.Keys(counts), byName) {
		if n := counts[k]; float64(n)-l.Share*float64(sizes[k]) > rounding {
			return fmt.Sprintf(
				"%s would be deleted, among them %d of %d %s; the limit is %d where that is more than %.6g %% of a kind",
				words.Count(total, "object", "objects"), n, sizes[k], k, l.Objects, 100*l.Share)
		}
	}
	return ""
}
