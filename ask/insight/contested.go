package insight

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// contest says for which objects it cannot be determined whether they go: all their owners go, one
// of them keeps the object and another takes it along, and two workers act on these at the same
// time. If the reference to the one that takes it along is removed first, the other is there still
// and then releases the object, which stays. If the object is released first, what is left is the
// reference to an owner that is gone, and it goes. Kubernetes' own collector is in the same race
// where one of two owners is deleted with orphan.
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

// contested are an owner that goes and keeps an object, and one that goes and does not; nil where
// another owner stays, which keeps the object anyway.
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
