package graph

// Still reports whether an action, made some time ago, is still what is to be done about its object
// as it was read now: the graph shows the object like this, its resourceVersion aside, and decides
// the same. Both are needed: the watch may have brought, since the decision, what makes it wrong.
func (g *Graph) Still(a Action, live *Object) bool {
	now := g.Decide(a.Object.UID)
	now.Object.ResourceVersion = a.Object.ResourceVersion
	return now.Same(a) && g.Shows(live)
}
