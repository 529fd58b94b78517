package drain

import (
	"fmt"

	"github.com/weir-dev/weir/controller/words"
)

// Refusals collects why objects of one kind could not be deleted. The zero value is empty.
type Refusals struct {
	objects int
	text    string // the first in the order of texts
}

// Add adds why an object could not be deleted.
func (r *Refusals) Add(text string) {
	text = words.Cut(text, MostReason)
	if r.objects++; r.objects == 1 || text < r.text {
		r.text = text
	}
}

// String returns one of the reasons, and how many objects have it or another; empty if there are
// none. The text does not depend on the order in which they were added.
func (r *Refusals) String() string {
	if r.objects > 1 {
		return fmt.Sprintf("%s (and %d more refused)", r.text, r.objects-1)
	}
	return r.text
}
