// Package follow keeps the ownership graph of a cluster. It discovers the kinds, runs one reflector
// for each, and checks that the API server goes on from what was seen of it. It is the only part of
// the controller that the webhook uses. It makes no decision and no change.
//
//	discovery ─▶ one reflector for each kind ─▶ Store (the graph, one lock) ─▶ the leader gets uids
//
// The lock of Store guards the graph, and nothing that can block runs under it. That of Watcher
// guards which kinds are followed, and what they are asked for, that of History the gate at which
// writes wait, and that of a follower how far its kind is. Watcher.Run joins all goroutines: a reflector for each kind,
// and one each that opens the gate, asks how far watches have come, and has kinds listed hourly.
package follow
