// Package script is the text language of the ownership graph: one line, one thing that happens.
//
// Golden tests are written in it; random tests, the fuzzer and the simulation print what they found
// in it, so that a failure can be committed as it is.
//
//	serve [KIND…]                        the kinds that the cluster serves; none named: the usual ones
//	list KIND [begin | end]              a complete list: begin, see…, end. Without either word the
//	                                     lines below are its objects, written as after "see KIND"
//	list KIND fail [forbidden] [reason=WORD]
//	list KIND slow [reason=WORD]         its first list takes long
//	behind KIND [reason=WORD]            its watch is broken
//	sync [KIND…]                         an empty list of each kind that was never listed
//	see KIND [NS/]NAME uid=UID [rv=RV] [owners=(OWNER, …)] [finalizers=(WORD, …)] [deleting]
//	gone KIND UID                        its watch reports the deletion
//	unlisted KIND UID                    a list would not show it
//	notfound KIND UID [history=N]        a live read says that it is not there; begun in history N
//	stop KIND                            its watch ends
//	rewind [reason=WORD]                 the API server's history went back
//	rewind-kind KIND                     that of an aggregated API did
//	look UID [as=LABEL]                  what the object is to look at is being looked up
//	answer LABEL present|absent|unanswered|denied [reason=WORD]
//	send UID [as=LABEL]                  its action goes out
//	accept LABEL                         and was accepted
//	protect LABEL                        or refused, by a policy that protects the object
//	collecting KIND UID CONCLUSION OWNERS
//	                                     it goes because of an inference about owners of a kind
//	remember KIND UID N                  a process before saw the owner deleted while N referred to it
//	rule KIND UID background|foreground|orphan|none [by=WORD]
//	holds FINALIZER
//	                                     how the deletion goes on of what a finalizer of ours holds;
//	                                     that is example.com/held if none is given
//	recheck [N]                          N rounds of the clock
//	drain NAMESPACE [off]                from now on it is told when its inventory changes
//	inventory NAMESPACE                  what it holds
//	caught UID wanted=(KIND, …) [kept=(KIND, …)] [most=N]
//	going [UID] [namespace=NAMESPACE] [instances=KIND] [kept=(KIND, …)]
//	                                     which objects of some kinds would be deleted, too
//	cascade [UID] [namespace=NAMESPACE] [instances=KIND] [kept=(KIND, …)] [most=N]
//	                                     what would be deleted, too, as far as N references tell
//	weigh UID… [most=N]                  what goes with objects, themselves included
//	inferred KIND                        what is to go because of inferences about owners of a kind
//	ended [N]                            owners seen to be deleted that left more than N objects
//	instances KIND                       how many there are
//	filled NAMESPACE                     what is deleted with a namespace
//	owner OWNER [NS]                     what is known of an owner, for a dependent in a namespace
//	depends UID UID                      whether the one is a dependent of the other
//	decide [UID…]                        what is to be done, about everything if none is named
//	dump                                 the whole graph
//	stats                                its size
//	check                                its invariants
//
// KIND is one of the usual ones (a resource, resource.group or short name: configmaps cm, pods po,
// nodes no, replicasets rs, deployments deploy, widgets wd, events ev), or it is spelled out:
//
//	RESOURCE[.GROUP]:KIND:VERSION[,VERSION…][:cluster][:uncollected]
//
// in "serve", and RESOURCE[.GROUP] everywhere else. "serve all -widgets" takes one out; the first
// version is the preferred one.
//
// OWNER is KIND/NAME/UID with an optional !block, !unblock (false, spelled out), *controller,
// *uncontroller. Its KIND is the singular with a capital letter: a usual one, or
// KIND.VERSION[.GROUP].
//
// An rv that is not given counts up. LABEL is the uid if it is not given; looking and answering,
// sending and accepting are apart because the cluster goes on in between. A WORD is escaped as in a
// URL query where it has to be: a name may contain anything.
//
// Each line answers with the objects that it made dirty, sorted by uid, and what is decided about
// them.
package script
