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
//
// What needs no more than objects, commands and what is there then is a script in
// testdata. It has a line that says where it is played: in each mode, in replace or
// in companion mode, or in either mode, which is both in the full ring only; without it, in the
// cluster that tests share. Below it are claims, each of which begins with ## and has a namespace
// of its own. A command is a line, and what it
// is about are the lines below it, indented. Commands do something:
//
//	make OBJECTS                    elsewhere COMMAND (in another namespace)
//	delete NAME PROPAGATION         define KIND [cluster] VERSION …
//	own NAME OWNER …                policy KIND SPEC (HERE: the namespace)
//	patch NAME JSON                 namespace JSON (a patch of it)
//	unfinalize NAME …               drop (the namespace), finalize [WORD …] (in its spec)
//	deployed NAME (with its set, pod-1 and pod-2)
//	forge REFERENCE NAME [kind=…] [name=…] [uid=…|new] [version=…] [group=…]
//	many KIND PREFIX N OWNER        manifest OBJECT, file LINES (written to FILE)
//	compiled KIND SPEC (a policy, as weir policy compile prints it)
//	unarmed NAME … (as if made while the webhook was away)
//	[!] kubectl …, [!] ask … (kubectl weir): it says these lines; !: it is refused
//
// or wait for what is to be seen:
//
//	gone, stay, there, alive, terminating NAME …    owners NAME [OWNER …]
//	finalizers NAME [WORD …]
//	event NAME REASON, told REASON (of the namespace): lines
//	until [!] kubectl|ask …: it says these lines    ownerless NAME …
//	added KIND, refused … (by kubectl): that a policy is in force
//	foreground NAME, conditions LINES, wave NAME, dropped, idle
//
// The owner "never" never was. NAMESPACE, ELSEWHERE, FILE, UID(NAME), TREE(KIND NAME),
// which is archived, X(N), which is so many letters, and PREFIX-*, which are all objects
// that begin so, are filled in.
package e2e
