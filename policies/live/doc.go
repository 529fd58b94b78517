// Package live keeps the policies that are in force, and the namespaces by whose labels they
// select. Policies come as objects of the API server and as files, and are compiled into one
// policies.Set.
//
// Readers never wait: a set is replaced as a whole behind one pointer. While the API server cannot
// be reached, or a file cannot be read, what was there before stays in force.
//
// State.Run joins all goroutines: one for each kind of policy, one for namespaces, one for files,
// and one that checks whether the API server's history goes on. Each has a lock for what it has
// found; none is held while a set is compiled.
package live
