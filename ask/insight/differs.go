package insight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// order is when objects are deleted that are deleted in both of two plans: counted among them, so
// that what came in between, or is not there any more, does not move all that follows.
type order struct{ was, is map[types.UID]int }

func newOrder(was, is []*Item) order {
	deleted := func(items []*Item) map[types.UID]*Item {
		return byUID(slices.DeleteFunc(slices.Clone(items), func(i *Item) bool { return i.Outcome != Deleted }))
	}
	before, now := deleted(was), deleted(is)
	ranks := func(of, others map[types.UID]*Item) map[types.UID]int {
		var steps []int
		for uid, i := range of {
			if others[uid] != nil {
				steps = append(steps, i.Step)
			}
		}
		slices.Sort(steps)
		steps = slices.Compact(steps)
		out := map[types.UID]int{}
		for uid, i := range of {
			if n, found := slices.BinarySearch(steps, i.Step); found && others[uid] != nil {
				out[uid] = n + 1
			}
		}
		return out
	}
	return order{ranks(before, now), ranks(now, before)}
}

// differs says in words how an object goes otherwise than before, where it comes to the same.
func (i *Item) differs(before *Item, o order) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	was, is := slices.Sorted(slices.Values(before.Finalizers)), slices.Sorted(slices.Values(i.Finalizers))
	switch {
	case slices.Equal(was, is):
	case len(is) == 0:
		say("waits for no finalizer any more; before, for %s", strings.Join(was, ", "))
	case len(was) == 0:
		say("waits for the finalizers %s now", strings.Join(is, ", "))
	default:
		say("waits for the finalizers %s now; before, for %s", strings.Join(is, ", "), strings.Join(was, ", "))
	}
	switch {
	case i.Stage > 0 && before.Stage == 0:
		say("goes only after finalizers of other objects come off")
	case i.Stage == 0 && before.Stage > 0:
		say("waits for no finalizers of other objects any more")
	case o.was[i.UID] != o.is[i.UID]:
		say("goes in step %d of what both plans delete; before, in step %d", o.is[i.UID], o.was[i.UID])
	}
	if i.Propagation != before.Propagation || i.Policy != before.Policy {
		say("is deleted %s now; before, %s", i.how(), before.how())
	}
	if now, then := i.GracePeriodSeconds, before.GracePeriodSeconds; now != nil && then != nil && *now != *then {
		say("has %ds to stop; before, %ds", *now, *then)
	}
	if (i.CreatedAgainBy == nil) != (before.CreatedAgainBy == nil) {
		say("is %slikely to be created again by its controller", not(i.CreatedAgainBy == nil))
	}
	if i.Deleting != before.Deleting {
		say("is %sbeing deleted already", not(!i.Deleting))
	}
	if i.Doubt != before.Doubt {
		say("what policies say about it: %s; before, %s", cmp.Or(i.Doubt, "known"), cmp.Or(before.Doubt, "known"))
	}
	if i.Contested != before.Contested {
		say("whether it goes: %s; before, %s", cmp.Or(i.Contested, "certain"), cmp.Or(before.Contested, "certain"))
	}
	return out
}

func not(so bool) string {
	if so {
		return "not "
	}
	return ""
}

// how is the propagation with which an object is deleted.
func (i *Item) how() string {
	how := strings.ToLower(string(cmp.Or(i.Propagation, "as its kind is by default")))
	if i.Policy != "" {
		how += " by policy " + i.Policy
	}
	return how
}
