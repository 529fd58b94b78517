// Package controller puts together what follows a cluster and what works on it. The parts are
// packages below this one: follow keeps the graph; collect, namespaces and enforce work, by way of
// request and events. None decides: the packages graph, drain and policies do, and do no I/O.
//
// Every replica follows the cluster and keeps a warm graph (Following); a Controller is one that
// may lead, and then works.
//
// Goroutines: one for each part that works, joined by Lead, and for each that follows, joined by
// Follow. It has no locks: each part has its own.
package controller
