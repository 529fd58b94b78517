// Package sim plays the ownership graph against a cluster that it makes up: an API server, watches that
// lag and break, requests whose outcomes get lost, users who change their minds, a collector that is
// restarted. All of it follows from one seed.
//
//	users, other controllers ──▶ server ◀── requests ── collector (queue, workers, graph)
//	                               │                        ▲
//	                               └── watches, lists, discovery, each at its own pace
//
// # What must hold
//
// Safety, at each write that the server accepts from the collector, on what the server has at that
// instant. An object is deleted only if every one of its references is to an owner that is absent, or
// that is being deleted foreground; what an orphaning owner leaves is not deleted; a reference to an
// owner is removed only if the owner is absent, ending foreground, or orphaning; a reference stops
// blocking only if its owner is ending foreground. "Is" includes "was": a deletion cannot be undone,
// and a user who changes the propagation of one may be faster than any watch.
//
// Liveness, when users and faults have stopped and everything was delivered: the server is as settled
// says, which no decision of the graph enters; the graph has nothing more to ask for; and the number of
// requests on the way there was bounded.
package sim
