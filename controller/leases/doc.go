// Package leases waits for Leases. An elector of client-go finds out by requests at random times
// that another one renews its Lease no more, and does so twice: up to nine seconds late with a
// Lease of 15. A Vacancy is told by the watches, reads the Lease once, and counts from there. An
// elector also goes on for ten seconds when another has taken the Lease: Elected tells of that.
//
// Who holds a Lease, and for how long it is valid, are as client-go has it: a holder that cannot
// renew ends before another may begin.
//
// No goroutines of its own. A channel of one element, one that is closed once, and a flag are all
// that its callers share, and Showing never blocks.
package leases
