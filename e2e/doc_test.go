// Package e2e runs the weir binary against a real Kubernetes control plane and
// claims, one test each, what users may rely on.
//
// A fixture is a test's part of a cluster. Most tests share one cluster, each in a
// namespace of its own; those that break something have one for themselves.
// Objects are written in a small language:
//
//	KIND NAME [owners=(OWNER, …)] [finalizers=(WORD, …)]
//
// a line each. KIND is a short name as kubectl has it, or that of a kind that the
// test defined. OWNER is the NAME of an object that was made before, with an
// optional !block or !unblock (false, spelled out) and *controller.
package e2e
