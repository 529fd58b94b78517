// Package collect does what the graph says with garbage: one queue of uids, workers that take one
// object at a time and make the one request that its decision asks for, with preconditions on all.
// It decides nothing and keeps no state that matters: what was done shows in the watch, and after a
// restart in the first lists.
//
// Goroutines: the workers, the pacing of lookups and the record of cascades, joined by Workers.Run.
// Locks guard ages of what is queued, and the record; no request is made under one.
package collect
