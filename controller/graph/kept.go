package graph

// What is kept although its owners are gone: because a policy protects it or a person has decided
// so, or because they are too many to be followed.

// apply notes that an object is kept, unless the watch has shown another version since.
func (ev Protected) apply(g *Graph) {
	id := g.nodeIn(ev.Object.Kind, ev.Object.UID)
	if id == 0 || g.versionOf(id) != ev.Object.ResourceVersion {
		return
	}
	g.protected[id] = ev.Why
	g.mark(id)
}

// setUnfollowed stores how many owner references of an object are not followed, and reports whether
// that changed.
func (g *Graph) setUnfollowed(id uint32, n int) bool {
	if g.unfollowed[id] == n {
		return false
	}
	if g.unfollowed[id] = n; n == 0 {
		delete(g.unfollowed, id)
	}
	return true
}
