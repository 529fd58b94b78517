// Package sim plays the ownership graph against a cluster that it makes up: an API server, watches
// that lag, break and lose what they should tell, requests whose outcomes get lost, users who
// change their minds, collectors that are restarted, or go on working although another leads, a
// server that is restored from a backup; namespaces that are deleted, wave by wave. All of it
// follows from one seed.
//
//	users, other controllers ──▶ server ◀── requests ── collector (queue, workers, graph)
//	                               │                        ▲
//	                               └── watches, lists, discovery, each at its own pace
//
// # What must hold
//
// Safety, at each write that the server accepts from the collector, on what the server has at that
// instant, and by its ledger of who referred to whom when (ledger.go), whatever the collector saw.
// An object is deleted only if every one of its references is to an owner that is absent, or that
// is being deleted foreground; what an orphaning owner leaves is not deleted; a reference to an
// owner is removed only if the owner is absent, ending foreground, or orphaning; a reference stops
// blocking only if its owner is ending foreground. "Is" includes "was": a deletion cannot be
// undone, and a user who changes the propagation of one may be faster than any watch.
//
// A finalizer of ours comes off only after policies were asked, and of what they want orphaned as
// orphan does.
//
// One that a collector released from an owner that was deleted with orphan is not deleted on
// account of owners that never were. An owner that was deleted with orphan goes only when nothing
// refers to it of which the collector had been told, and nothing of a kind that it knew it could
// not follow.
//
// A namespace goes only when nothing is in it, and nothing else of it is deleted with it while the
// process knows of a pod there.
//
// With a brake (RunBraked) no process deletes more by inference, for owners of one kind, than the
// limit, before a person has decided about each object; what goes with an object that was let
// through is not counted again. When all is decided nothing is held.
//
// Liveness, when users and faults have stopped and everything was delivered: the server is as
// settled says, which no decision of the graph enters; the graph has nothing more to ask for; and
// the number of requests on the way there was bounded.
package sim
