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
// The package reads from the syntax tree of an expression which parts of objects it looks at
// (Expression.MetadataOnly). An expression that is not understood looks at everything.
//
// The package imports CEL and the API server's use of it, and nothing of ours.
package cel
