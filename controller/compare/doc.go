// Package compare looks for what the graph has wrong. The graph follows from watches, and nothing
// in it would tell that one has lost an event; so each kind is listed once in a while and compared.
// What is found is repaired, counted, and a bug.
//
// One goroutine, Comparer.Run, and no locks.
package compare
