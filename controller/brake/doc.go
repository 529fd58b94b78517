// Package brake limits what is deleted without having been asked for.
//
// Whoever deletes an owner asks for its dependents to go, and the watch shows that. What is
// inferred is another matter: a live read that finds no owner, a definition that went with all its
// instances, a reference that was written when its owner had gone. If that is wrong, it is wrong
// for many objects at once: a backup that was restored, an API that lost its storage, a controller
// that writes nonsense. So what is inferred about the owners of one kind is counted, and past a
// limit it is held: nothing more is deleted for it, and all else goes on.
//
// Ledger is the bookkeeping, without a clock or a lock. Brake has the lock around it, under which
// nothing can block; its goroutines are the caller's: Run keeps a HeldCollection for each kind of
// owner of which something is held, and reads there what a person decides; Remember records which
// owners were seen to be deleted, and Recall takes that in.
//
// Where another collector deletes, a Guard answers for each of its deletes, in the webhook. Heed,
// whose one goroutine is the caller's, has a process hold what the leader's HeldCollections say.
package brake
