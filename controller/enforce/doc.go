// Package enforce does what policies ask for besides the answers of the webhook: deletions of
// objects that carry Weir's finalizer go as policies say, what was there before a policy gets the
// finalizer (back-fill), the webhook configurations follow the policies, it is tried whether the
// API server asks the webhook, and each policy's status says how far all that is. Only the leader
// does.
//
// Goroutines: one for each of these, and the workers of deletions, joined by Enforcer.Run. Each
// part has a lock of its own for what others read of it; no request is made under one.
package enforce
