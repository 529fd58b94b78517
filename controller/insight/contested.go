package insight

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// contest says of each object that one owner keeps and another takes along that nobody can tell which: both go, and each of
// two workers acts on one of them. If the reference to the owner that is gone is removed first, the object has an owner that lives on yet,
// which then releases it; if it is released first, what is left is the reference to an owner that is gone. Kubernetes' own collector is in
// the same race where one of two owners is deleted with orphan.
func (c *playing) contest() {
	if !c.keeps() {
		return
	}
	deleted := map[types.UID]*Item{}
	for _, i := range c.order {
		if i.Outcome == Deleted {
			deleted[i.UID] = i
		}
	}
	for _, i := range c.order {
		keeper, taker := i.contested(deleted)
		if keeper == nil || taker == nil {
			continue
		}
		how := "is deleted with orphan"
		if keeper.Propagation != metav1.DeletePropagationOrphan {
			how = "has a policy, " + keeper.Policy + ", that keeps it"
		}
		i.Contested = fmt.Sprintf("its owner %s %s, and its owner %s takes it along: it depends on which comes first",
			keeper.Short(i.Namespace), how, taker.Short(i.Namespace))
	}
}

// keeps tells whether any owner that goes keeps dependents, and another goes besides.
func (c *playing) keeps() bool {
	going, keeping := 0, false
	for _, i := range c.order {
		if i.Outcome == Deleted {
			going++
		}
		keeping = keeping || len(i.keepers) > 0 || i.Outcome == Deleted && i.Propagation == metav1.DeletePropagationOrphan
	}
	return keeping && going > 1
}

// contested are an owner that goes and keeps the object, and one that goes and does not.
func (i *Item) contested(deleted map[types.UID]*Item) (keeper, taker *Item) {
	for _, uid := range i.owners {
		o := deleted[uid]
		switch {
		case o == nil:
		case o.Propagation == metav1.DeletePropagationOrphan || slices.Contains(i.keepers, uid):
			keeper = o
		default:
			taker = o
		}
	}
	return keeper, taker
}
