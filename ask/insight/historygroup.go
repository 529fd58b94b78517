package insight

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-dev/weir/controller/words"
)

// sameCause is the longest time between one cascade and the next of the same group.
const sameCause = 30 * time.Second

// causedAs is what cascades of one cause have in common.
type causedAs struct{ kind, group, requested, policy, told string }

// grouped groups cascades that are likely to have one cause, such as those of the instances of a
// definition: their first objects are of one kind, were deleted at about the same time, and Weir
// saw the same request for each. Small groups are told one by one. all, and each line, have the
// last cascade first.
func grouped(all []Cascade, full bool) (lines [][]*Cascade) {
	open := map[causedAs]int{} // the group to which the next cascade of a cause belongs
	of := make([]int, len(all))
	var groups [][]*Cascade
	for i := range all {
		c := &all[i]
		as, ok := c.cause()
		n, known := open[as]
		if !ok || !known || groups[n][len(groups[n])-1].At.Sub(c.At) > sameCause {
			n = len(groups)
			groups = append(groups, nil)
		}
		if ok {
			open[as] = n
		}
		groups[n] = append(groups[n], c)
		of[i] = n
	}
	for i := range all {
		switch group := groups[of[i]]; {
		case full || len(group) <= someNames:
			lines = append(lines, []*Cascade{&all[i]})
		case group[0] == &all[i]:
			lines = append(lines, group)
		}
	}
	return lines
}

// cause returns the key by which cascades are grouped. It is false if the Event does not name all
// that was collected, so that the cascade cannot be counted with others.
func (c *Cascade) cause() (as causedAs, ok bool) {
	as = causedAs{kind: c.Kind, group: c.group, requested: c.Requested}
	if c.What == "" {
		return as, c.Requested != ""
	}
	total := 0
	if n, err := fmt.Sscanf(c.What, "%d object", &total); n != 1 || err != nil {
		return as, false
	}
	_, as.policy, _ = strings.Cut(c.What, "; ")
	as.told = "collected"
	return as, total > 0 && total == len(c.Collected)
}

// sayTogether writes cascades of one cause as one line.
func sayTogether(all []*Cascade) string {
	c := all[0]
	if len(all) == 1 {
		return c.root() + ": " + c.said()
	}
	roots := c.root()
	for _, other := range all[1:someNames] {
		roots += ", " + strings.TrimPrefix(other.root(), c.Kind+" ")
	}
	as, _ := c.cause()
	var collected []Object
	for _, one := range all {
		collected = append(collected, one.Collected...)
	}
	var said []string
	if as.requested != "" {
		said = append(said, as.requested)
	}
	if as.told != "" {
		said = append(said, fmt.Sprintf("%d objects that they owned, directly or not, were deleted by "+
			"garbage collection: %s", len(collected), kindsOf(collected)))
	}
	if as.policy != "" {
		said = append(said, as.policy)
	}
	return fmt.Sprintf("%s and %d more: %s", roots, len(all)-someNames,
		words.Printable(strings.Join(said, "; ")))
}
