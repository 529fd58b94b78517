package insight

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// contest marks the objects for which it cannot be determined whether they are deleted. All owners
// of such an object are deleted, one of them orphans it, and another deletes it as a dependent; two
// workers act on the owners at the same time. If the reference to the deleting owner is removed
// first, the orphaning owner still exists, then releases the object, and it stays. If the object is
// released first, the reference that is left is to an absent owner, and the object is deleted. The
// built-in collector has the same race if one of two owners is deleted with orphan.
func (c *playing) contest() {
	deleted := map[types.UID]*Item{}
	for _, i := range c.order {
		if i.Outcome == Deleted {
			deleted[i.UID] = i
		}
	}
	for _, i := range c.order {
		keeper, taker := c.contested(i, deleted)
		if keeper == nil || taker == nil {
			continue
		}
		how := "is deleted with orphan"
		if keeper.Propagation != metav1.DeletePropagationOrphan {
			how = "has a policy, " + keeper.Policy + ", that keeps it"
		}
		i.Contested = fmt.Sprintf("its owner %s %s, and its owner %s deletes it: it depends on which happens first",
			keeper.Short(i.Namespace), how, taker.Short(i.Namespace))
	}
}

// contested returns an owner that is deleted and keeps an object, and one that is deleted and does
// not keep it. Both are nil if another owner stays, which keeps the object anyway.
func (c *playing) contested(i *Item, deleted map[types.UID]*Item) (keeper, taker *Item) {
	for _, uid := range i.owners {
		o := deleted[uid]
		switch {
		case o == nil:
			if _, stays := c.world.Graph.Find(uid); stays {
				return nil, nil
			}
		case o.Propagation == metav1.DeletePropagationOrphan || slices.Contains(i.keepers, uid):
			keeper = o
		default:
			taker = o
		}
	}
	return keeper, taker
}
