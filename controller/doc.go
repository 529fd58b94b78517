// Package controller is the edge around the ownership graph: watches bring events in, workers carry
// actions out. It decides nothing; package graph does no I/O.
//
//	discovery ─▶ one reflector per kind ─▶ store (graph, one lock) ─▶ queue of uids ─▶ workers ─▶ requests
//	                                         ▲                                                      │
//	                                         └─────────────── answers and outcomes ─────────────────┘
//
// Every replica follows the cluster and keeps a warm graph; only the leader has workers. Workers keep
// no state: what was done shows in the watch, and after a restart in the first lists.
package controller
