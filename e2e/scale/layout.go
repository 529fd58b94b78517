package scale

import "fmt"

// A Tree is what a namespace has in it: one root, objects that it owns, and objects that these own.
type Tree struct{ Middles, Leaves int }

// fanOut is how many dependents an object in the middle has.
const fanOut = 49

// TreeOf is a tree of n objects, at least two.
func TreeOf(n int) Tree {
	middles := max(1, n/(fanOut+1))
	return Tree{middles, n - 1 - middles}
}

// Size is how many objects there are.
func (t Tree) Size() int { return 1 + t.Middles + t.Leaves }

// OwnerOf is the place of an object's owner, -1 for the root: the root is at 0, and those in the
// middle come next.
func (t Tree) OwnerOf(i int) int {
	switch {
	case i == 0:
		return -1
	case i <= t.Middles:
		return 0
	}
	return 1 + (i-1-t.Middles)%t.Middles
}

func (t Tree) nameOf(i int) string { return fmt.Sprintf("o%d", i) }
