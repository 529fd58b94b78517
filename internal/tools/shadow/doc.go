// Package shadow compares what Weir would do with what the cluster's own garbage collector does. In
// shadow mode nothing is sent: the workers of package collect report each decision, and the watches
// show whether a client carries it out.
//
// Kinds that are not seen are not compared. They are reported, and the time without them does not
// count (sight.go).
//
// The result is a Report (package report), which is served (serve.go).
//
// Ledger is the bookkeeping, without a clock. Shadow has the lock around it, under which nothing
// blocks. One goroutine checks open decisions, joined by Run.
package shadow
