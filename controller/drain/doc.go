// Package drain decides how a namespace is emptied: which kinds are deleted next, what is waited
// for, and when the namespace may go. It does no I/O and knows no clock.
//
// The content of a namespace is sorted into waves: those of a DrainPolicy, or pods and then the
// rest. The next wave begins only when nothing of this one is left. So nothing that pods use is
// deleted before the pods are gone (KEP-5080). A pod whose deletion is refused holds up all later
// waves, where the reference goes on (RB 7.13).
//
//	for each wave      a kind whose count is not complete   List it
//	                   objects that are not terminating     Delete them
//	                   anything left, or unreadable         Wait; for as long as the wave has, if it may
//	                                                        proceed then
//	after all waves    what a wave left that timed out      Wait
//	                   kinds not asked for again            Discover: there may be others by now
//	                   an API group that does not answer    Wait: it may hold content
//	                   kinds not listed live yet            List: the proof, one request a kind
//	                   else                                 Finalize
//
// Counts come from the ownership graph, which follows the cluster. The live lists at the end close
// the gap between what was written and what the graph has seen. A kind that cannot be listed holds
// the namespace, and is named. Kinds that clients can never list are not content.
package drain
