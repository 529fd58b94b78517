// Package leases waits for the leader's Lease. An elector of client-go polls at random times, and so
// notices up to nine seconds late that a Lease of 15 is no longer renewed. A Lease gets changes from
// a watch, reads the Lease once, and counts from there. An elector also goes on for ten seconds
// after another process has taken the Lease; Taken reports that at once.
//
// Who holds a Lease, and for how long it is valid, are as client-go has it: a holder that cannot
// renew ends before another may begin.
//
// The package has no goroutines of its own. Its callers share a channel of one element, one that is
// closed once, and a flag. Showing never blocks.
package leases
