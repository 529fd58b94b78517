// Package cel holds the conditions of policies: CEL expressions, as the API server itself compiles
// and limits them for admission policies.
//
//	text ─▶ Compile ─▶ Condition, immutable ─▶ Evaluation.All(conditions), with the Variables of one request
//
// It is pure, and knows nothing of policies: it gets Variables, and asks for each when an
// expression needs it. A Condition may be used by many goroutines, an Evaluation by one. There is
// no lock; what is made once for the process (the compiler, its environments) is made at its first
// use.
//
// The package reads some facts from the syntax tree of an expression: whether it can be true at all
// while a variable is null (NeverTrue), which parts of objects it looks at
// (Condition.MetadataOnly), and whether it costs so little that it needs no meter. An expression
// that is not understood gets the safe answer: it can be true, looks at everything, and is metered.
//
// The package imports CEL and the API server's use of it, and nothing of ours.
package cel
