// Package undo records what is deleted before it goes, where a policy asks for it: what the leader
// does for the archive.
//
//	held root ─▶ Recorded? ─▶ queue ─▶ what goes with it (graph) ─▶ lists, reads ─▶ archive.Store ─▶ durable ─▶ asked again
//
// A root stays until its tree is durable: held by Weir's finalizer, or, if it is a namespace, by who
// drains it. What goes with it is read live, and compared with the graph until nothing has changed
// since it was read, three times at most: what changes still is named in the tree. A leader that
// ends leaves a tree that is not durable; the next one begins again, and purges that. Of one that is
// durable it believes what is sealed in it.
//
// All trees together have a limit, of which each namespace has a share. When it is reached, the
// oldest trees go of the namespace that has more than its share.
//
// Goroutines: two record, one looks after the catalogue; Run waits for them. Locks: one, which
// guards the roots and the catalogue, and is held for no request.
package undo
