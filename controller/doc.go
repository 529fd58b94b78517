// Package controller assembles the parts that follow a cluster and act on it. They are packages below
// this one: follow keeps the graph; collect, namespaces and enforce act, by way of request and
// events. They decide nothing: the packages graph, drain and policies do, and do no I/O.
//
// Every replica follows the cluster and keeps a warm graph (Following). A Controller may also lead,
// and then acts.
//
// Goroutines: one for each part that acts, joined by Lead, and for each that follows, joined by
// Follow. Locks: none; each part has its own.
package controller
