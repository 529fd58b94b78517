// Package drain decides how a namespace is emptied: which kinds are deleted next, what is waited
// for, and when the namespace may go. It does nothing itself and knows no clock.
//
// The content of a namespace is sorted into waves: those of a DrainPolicy, or pods and then the
// rest. A wave is over when nothing of it is left; the next one begins only then. So nothing that
// pods use goes before the pods do (KEP-5080), and a pod whose deletion is refused holds up what
// comes after it, where the reference goes on (RB 7.13).
//
//	for each wave      a kind whose count is not complete   List it
//	                   objects that are not terminating     Delete them
//	                   anything left, or unreadable         Wait; for as long as the wave has, if it may
//	                                                        proceed then
//	after all waves    what a wave left that timed out      Wait
//	                   kinds not asked for again            Discover: there may be others by now
//	                   an API group that does not answer    Wait: it may hold content
//	                   creates that may be under way        Wait, for as long as they may take
//	                   kinds not listed live yet            List: the proof, one request a kind
//	                   else                                 Finalize
//
// Counts come from the ownership graph, which follows the cluster; the live lists at the end close
// the gap between what was written and what the graph has seen. Of a kind whose API is known to be
// down the graph's word is taken that a namespace holds nothing: nothing can be made in an API to
// which no API server passes requests on. That a list failed does not show it.
package drain
