// Package follow keeps the ownership graph of a cluster: it discovers the kinds, runs one reflector
// for each, and watches over whether the API server goes on from what was seen of it. It is all
// that a webhook uses of the controller. It makes no decision and no change.
//
//	discovery ─▶ one reflector for each kind ─▶ Store (the graph, one lock) ─▶ who leads is told of uids
//
// Locks: that of Store guards the graph, and nothing that can block runs under it. Those of Watcher
// guard which kinds are followed, that of History the gate that writes wait at. Goroutines: a
// reflector for each kind, and one each that opens the gate, asks how far watches have come, and has
// kinds listed hourly, joined by Watcher.Run. A follower's lock is held for a look at how far it is.
package follow
