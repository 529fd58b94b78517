package insight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// ranks are the steps in which objects are deleted that another plan deletes, too: counted among
// them, so that what came in between, or is not there any more, does not move all that follows.
func ranks(items []*Item, other map[types.UID]*Item) map[types.UID]int {
	var both []*Item
	var steps []int
	for _, i := range items {
		if o := other[i.UID]; o != nil && o.Outcome == Deleted && i.Outcome == Deleted {
			both, steps = append(both, i), append(steps, i.Step)
		}
	}
	slices.Sort(steps)
	steps = slices.Compact(steps)
	out := make(map[types.UID]int, len(both))
	for _, i := range both {
		n, _ := slices.BinarySearch(steps, i.Step)
		out[i.UID] = n + 1
	}
	return out
}

// differs says how an object goes otherwise than before, where it comes to the same. What is known
// of one of the two only is no difference.
func (i *Item) differs(before *Item, rank, rankBefore int) (out []string) {
	was := before.facets(rankBefore)
	for n, is := range i.facets(rank) {
		if is[1] != was[n][1] && is[1] != "" && was[n][1] != "" {
			out = append(out, fmt.Sprintf("%s: %s; before, %s", is[0], is[1], was[n][1]))
		}
	}
	return out
}

// facets are how an object goes: each by its name, and empty where it is not known.
func (i *Item) facets(rank int) [][2]string {
	yes := func(so bool) string { return map[bool]string{true: "yes", false: "no"}[so] }
	when := fmt.Sprintf("in step %d of what both plans delete", rank)
	if i.Stage > 0 {
		when += ", after finalizers of other objects come off"
	}
	grace := ""
	if i.GracePeriodSeconds != nil {
		grace = fmt.Sprintf("%ds", *i.GracePeriodSeconds)
	}
	return [][2]string{
		{"waits for finalizers", cmp.Or(strings.Join(slices.Sorted(slices.Values(i.Finalizers)), ", "), "none")},
		{"goes", when},
		{"is deleted", i.how()},
		{"has time to stop", grace},
		{"is likely to be created again by its controller", yes(i.CreatedAgainBy != nil)},
		{"is being deleted already", yes(i.Deleting)},
		{"what policies say about it", cmp.Or(i.Doubt, "known")},
		{"whether it goes", cmp.Or(i.Contested, "certain")},
	}
}

// how is the propagation with which an object is deleted.
func (i *Item) how() string {
	how := strings.ToLower(string(cmp.Or(i.Propagation, "as its kind is by default")))
	if i.Policy != "" {
		how += " by policy " + i.Policy
	}
	return how
}
