// Package live keeps what decisions rest on as it is now: the policies, which come as objects of
// the API server and as files, compiled into one policies.Set; and the namespaces, by whose labels
// policies select.
//
// Readers never wait: a set is replaced as a whole behind one pointer. While the API server cannot
// be reached, or a file cannot be read, what was there before stays in force.
//
// Goroutines: one for each kind of policy, one for namespaces, one for files and one that asks
// whether the API server's history goes on, joined by State.Run. Locks: one of what each of them
// has found; a set is compiled under none.
package live
