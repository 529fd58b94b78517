// Package brake limits what is deleted although nobody was seen to ask for it.
//
// A client that deletes an owner asks for its dependents to be deleted, and the watch shows that.
// Other garbage is inferred: a live read finds no owner, a definition went with all its instances,
// a reference was written when its owner had gone. If that is wrong, it is wrong for many objects
// at once: a backup was restored, an API lost its storage, a controller writes nonsense. So inferred
// deletes are counted by the kind of the owners. Past a limit the kind is held: nothing more is
// deleted for it, and all else goes on.
//
// Ledger does the counting, and has no clock and no lock. Brake has the lock, under which only the
// graph is read. Its goroutines are the caller's. Run keeps a HeldCollection for each kind of owners
// that is held, and reads people's decisions there. Remember records which owners were seen to be
// deleted, and Recall reads that record after a restart.
package brake
