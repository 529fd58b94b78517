// Package collect does what the graph says with garbage. It has one queue of uids, and workers that
// take one object at a time and make the one request that its decision asks for, with
// preconditions. It decides nothing and keeps no state that matters: what was done shows in the
// watch, and after a restart in the first lists.
//
// Workers.Run joins all goroutines: the workers, the pacing of lookups and the record of cascades.
// Locks guard the ages of queued objects, and the record; no request is made under one.
package collect
