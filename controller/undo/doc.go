// Package undo records objects before they are deleted, where a policy asks for it. The leader runs
// it.
//
//	held root ─▶ Recorded? ─▶ queue ─▶ what goes with it (graph) ─▶ lists, reads ─▶ archive ─▶ durable ─▶ asked again
//
// A root is held until its tree is durable: by Weir's finalizer, or, if it is a namespace, by its
// drainer. What goes with it is read live, and compared with the graph until nothing has changed
// since it was read, three times at most. Objects that still change are named in the tree. A leader
// that ends leaves a tree that is not durable; the next leader purges it and begins again. Of a
// durable tree it believes only what is sealed in it.
//
// The size of all trees together is limited, and each namespace has a share. When the limit is
// reached, the oldest trees are purged of a namespace that has more than its share.
//
// Goroutines: two record, one ships, and Run itself reads the catalogue; Run joins them. One lock
// guards the roots and the catalogue, and is held for no request.
package undo
