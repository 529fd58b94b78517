// Package differential runs the same random worlds under kube-controller-manager's garbage
// collector and under Weir, and compares what is left of them after every operation.
//
// A world is a script: some thirty operations on a dozen objects, whose references are sound,
// stale, misnamed, foreign, cyclic and doubled. It follows from a seed and its number alone. There
// are two control planes, one with each collector; all worlds take the same step at the same time,
// each in namespaces and under names of its own, so that waiting for the collectors is paid once
// for all of them.
//
//	operation ─▶ both planes ─▶ both settle ─▶ states by logical name ─▶ Compare ─▶ a cause, or a failure
//
// A difference is accepted only with a cause that is found in the states themselves; see causes.go.
// What it did to the reference's side is then undone, and the world goes on.
package differential
