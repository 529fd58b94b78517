// Package graph is the ownership graph of a cluster, and what follows from it.
//
// Events go in through Apply, which answers with the objects whose decision may have changed;
// Decide says what is to be done about one of them. The package does nothing itself: no goroutine,
// lock, clock, randomness, logger or client. The same events in the same order give the same
// decisions, and each decision says why.
//
//	           Observed, Gone, List…          LookupAnswered, Accepted
//	watches ───────────────────────▶ Graph ◀─────────────────────── requests
//	                                   │
//	                  dirty uids ──▶ Decide ──▶ Action, to be carried out with uid and
//	                                            resourceVersion as preconditions
//
// # Claims
//
// An owner reference is a claim: that there is an object with this uid, of this kind, under this
// name, in the dependent's namespace. Many dependents make the same claim; it is judged once:
//
//	present      a node is exactly that object, or a live read found it
//	waiting      … and it is being deleted foreground: it waits for its dependents
//	orphaning    … and it is being deleted with orphan, or was when it was last seen
//	absent       its deletion was watched, or the API server said so; uids never return
//	unknown      neither; a live read will tell
//	asked        a live read is under way, or failed and will be repeated
//	unresolvable no read can tell: kind not served, or cluster-scoped object with a namespaced owner
//
// A list that no longer shows an object does not prove it absent: it makes the claims unknown. What
// is in doubt is kept. An absent owner stays absent as long as the API server has one history: when
// its storage is restored from a backup, everything is forgotten (Rewound).
//
// # Decisions
//
// One row applies, the first that matches. P, W, O, A, U, N are the numbers of references whose
// claim is present, waiting, orphaning, absent, unknown, unresolvable.
//
//	accepted, effect not seen yet               Wait
//	history went back, kinds listing            Wait, if a row below would ask for more than a Lookup
//	more than 256 references                    Keep, and report why, if a row below would
//	                                            look one up, delete, or write references:
//	                                            they are not all known
//	O > 0, being deleted itself                 Release O
//	O > 0                     U > 0             Lookup
//	                          asked > 0         Wait
//	                          a lookup failed   Wait, and report why
//	                          else              Release O, A, W
//	deleting with orphan      has dependents    Wait
//	                          kinds incomplete  Wait: an unseen dependent would be collected later.
//	                                            Incomplete: never listed, or the watch is broken
//	                          else              Unfinalize
//	deleting foreground       blocked, cycle    Unblock, if it leads the cycle, or there are
//	                                            too many to tell
//	                          blocked           Wait
//	                          kinds listing     Wait
//	                          else              Unfinalize
//	deleting otherwise        ruled             Unfinalize
//	                          else              Keep
//	no references                               Keep
//	P > 0                     A + W > 0         Release A, W
//	                          U > 0             Lookup, at low priority
//	                          else              Keep
//	U > 0                                       Lookup
//	asked > 0                                   Wait
//	N > 0                                       Keep, and report why
//	protected by a policy, or a person's word   Release A, W: all that are left
//	W > 0, has dependents     cycle             Unblock, also where there are too many to tell
//	                          else              Delete foreground
//	else                                        Delete, propagation by its own finalizers
//
// A finalizer of ours may hold an object until policies have said how its deletion goes on (Ruled).
// If the object's own finalizers ask for neither foreground nor orphan, the ruling decides; when
// the object is released, our finalizer comes off too. Until then the object is held. So is a
// foreground deletion that its own finalizers ask for, if Holds names our finalizer: dependents
// that are to be kept must be released before the first of them is deleted.
//
// So an object is deleted only when each of its references is to an owner that is absent, or that
// waits for its dependents to go.
//
// References to absent owners are removed while another owner is there, as the reference does
// (RB 3.8): else the object would be collected once that owner is deleted with orphan, or once an
// edit removes the reference to it.
package graph
