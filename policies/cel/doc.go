// Package cel holds the conditions of policies: CEL expressions, as the API server itself compiles
// and limits them for admission policies.
//
//	text ─▶ Compile ─▶ Condition, immutable ─▶ Evaluation.All(conditions), with the Variables of one request
//
// It is pure, and knows nothing of policies: what an expression is about comes in as Variables, and
// is asked for when an expression needs it. A Condition may be used by many goroutines, an
// Evaluation by one; there is no lock, and what is made once for the process (the compiler, its
// environments) is made by whoever needs it first.
//
// What an expression does is read from its syntax tree: whether it can be true at all while a
// variable is null (NeverTrue), which parts of objects it looks at (Condition.MetadataOnly), and
// whether it costs so little that it needs no meter. Whatever is not understood there is taken to
// be what costs more: it can be true, looks at everything, and is metered.
//
// It imports CEL and the API server's use of it, and nothing of ours.
package cel
