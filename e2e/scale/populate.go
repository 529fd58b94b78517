package scale

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
)

// A Namespace is one, and the tree in it. The object at place i is of the kind i modulo their
// number.
type Namespace struct {
	load.Object
	Tree    Tree
	Objects []load.Object
}

// KindOf is the kind of the object at a place.
func KindOf(i int) load.Kind { return templates[i%len(templates)].Kind }

var templates = Templates()

// Populate makes n namespaces with a tree in each, one of that many objects, and counts those that
// were made. When until has come the trees stay as they are, with fewer leaves, and no leaves are
// an error.
func Populate(ctx context.Context, cfg *rest.Config, n, objects int, until time.Time, made *atomic.Int64) ([]*Namespace, error) {
	typed, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("populate: %w", err)
	}
	c, err := newClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("populate: %w", err)
	}
	all := make([]*Namespace, n)
	tree := TreeOf(objects)
	err = load.Each(ctx, n, func(ctx context.Context, i int) error {
		ns, err := typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "scale-"}}, metav1.CreateOptions{})
		if err == nil {
			all[i] = &Namespace{load.Object{Name: ns.Name, UID: ns.UID, ResourceVersion: ns.ResourceVersion}, tree, make([]load.Object, tree.Size())}
		}
		return err
	})
	// Level by level, since an owner has to be there, and in all namespaces at once.
	for from, to := 0, 1; err == nil && from < tree.Size(); from, to = to, levelAfter(tree, to) {
		err = load.Each(ctx, n*(to-from), func(ctx context.Context, k int) error {
			if time.Now().After(until) {
				return nil
			}
			err := c.make(ctx, all[k%n], from+k/n)
			if err == nil {
				made.Add(1)
			}
			return err
		})
	}
	for i := 0; err == nil && i < n; i++ {
		err = all[i].trim()
	}
	if err != nil {
		return nil, fmt.Errorf("populate: %w", err)
	}
	return all, nil
}

// trim forgets objects past the first that was not made. There are as many more as clients at the
// most.
func (ns *Namespace) trim() error {
	made := slices.IndexFunc(ns.Objects, func(o load.Object) bool { return o.UID == "" })
	if made < 0 {
		return nil
	}
	if made <= 1+ns.Tree.Middles {
		return fmt.Errorf("the time was up after %d objects of %s", made, ns.Name)
	}
	ns.Objects = ns.Objects[:made]
	ns.Tree.Leaves = made - 1 - ns.Tree.Middles
	return nil
}

// levelAfter is where the level ends that begins at a place.
func levelAfter(t Tree, from int) int {
	if from <= 1 {
		return 1 + t.Middles
	}
	return t.Size()
}

// make makes the object at a place in a namespace, whose owner is there.
func (c client) make(ctx context.Context, ns *Namespace, i int) (err error) {
	var owner *reference
	if o := ns.Tree.OwnerOf(i); o >= 0 {
		owner = referenceTo(KindOf(o), ns.Objects[o])
	}
	ns.Objects[i], err = c.create(ctx, templates[i%len(templates)], ns.Name, ns.Tree.nameOf(i), owner)
	return err
}

// Count is how many objects there are in namespaces.
func Count(namespaces []*Namespace) int {
	n := 0
	for _, ns := range namespaces {
		n += len(ns.Objects)
	}
	return n
}
