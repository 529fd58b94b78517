// Package enforce does what policies ask for besides the answers of the webhook. Deletions of objects
// that carry Weir's finalizer go as policies say. Objects that existed before a policy get the
// finalizer and are counted (back-fill). The webhook configurations follow the policies. A canary
// checks whether the API server calls the webhook. The status of each policy says how far all that
// is. Only the leader does this.
//
// Goroutines: one for each of these, and the workers of deletions; Enforcer.Run joins them. Those
// that change the objects of a kind are joined by its look. Locks: the board's, for what the status
// is written from; the propagator's, for deletions that are held; and one of each look, under which
// the board's is never taken. No request is made under a lock.
package enforce
