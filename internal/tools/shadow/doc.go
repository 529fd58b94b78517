// Package shadow compares what Weir would do with what the cluster's own garbage collector does. In
// shadow mode nothing is sent: the workers of package collect tell of each decision, and the
// watches tell whether a client carries it out.
//
// Of namespaces it asks package drain what would come next in them, and the namespaces themselves
// where nothing moves (spaces.go).
//
// Nothing is compared of what is not seen: it is told, and the time without it does not count
// (sight.go).
//
// What was found is a Report (package report), which is written to a file, and served (serve.go).
//
// Ledger is the bookkeeping, without a clock; Shadow has the lock around it, which is held for
// nothing that can block. Goroutines: one that looks at what is open, joined by Run.
package shadow
