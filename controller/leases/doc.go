// Package leases adds to the leader's Lease of client-go what its elector does not tell: whether
// another process was seen to renew the Lease, and at once that another has taken it. The elector
// itself would go on for ten seconds.
//
// The package has no goroutines. Its callers share a channel that is closed once, and a flag.
package leases
