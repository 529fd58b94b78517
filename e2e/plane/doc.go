// Package plane runs a real Kubernetes control plane for tests, demonstrations
// and benchmarks: etcd, kube-apiserver and, as asked for, the reference
// controllers, the scheduler and kwok's fake nodes.
//
// Every part is a Go module of a pinned version and is built here, so a fresh
// clone needs nothing but Go. The children listen on loopback only, keep their
// data in a directory of their own, and never outlive the process that started
// them.
//
// A plane ends when its context does. A program that wants Ctrl-C to remove
// the plane's directory too passes a context made by signal.NotifyContext;
// without one the children still die, but the directory stays behind.
package plane
