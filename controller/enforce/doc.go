// Package enforce does what policies ask for besides the answers of the webhook: deletions of
// objects that carry Weir's finalizer go as policies say, what was there before a policy gets the
// finalizer and is counted (back-fill), the webhook configurations follow the policies, it is tried
// whether the API server asks the webhook, and each policy's status says how far all that is. Only
// the leader does.
//
// Goroutines: one for each of these, and the workers of deletions, joined by Enforcer.Run; those that
// change the objects of a kind are joined by its look. Locks: one of the board, which has what the
// status is written of; one of the deletions that are held; and one of each look, under which that of
// the board is never taken. No request is made under any.
package enforce
