package cel

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	corev1 "k8s.io/api/core/v1"
)

// People who may read the status of a policy, and write its conditions, may not be allowed to read
// the objects that it is about. The number of objects for which a condition holds would answer any
// question about them, so the status has it only if conditions look at nothing secret.

// Countable reports whether the number of objects for which the condition holds, or fails, may be
// shown: it looks only at metadata, and not at the annotation in which kubectl keeps a whole
// object.
func (c *Condition) Countable() bool { return c.countable }

// countable reports whether a metadataOnly expression names each annotation that it reads, and none
// of these is kubectl's.
func countable(expression string) bool {
	unnamed := 0
	finds(expression, func(e ast.Expr) bool {
		if isAnnotations(e) {
			unnamed++
		}
		if namesAnnotation(e) {
			unnamed--
		}
		return false
	})
	return unnamed == 0
}

// isAnnotations reports whether an expression is all annotations: oldObject.metadata.annotations or
// oldObject.metadata.?annotations, but not has(…).
func isAnnotations(e ast.Expr) bool {
	_, field := selected(e)
	return field == "annotations" && selectsMetadata(e) && (e.Kind() != ast.SelectKind || !e.AsSelect().IsTestOnly())
}

// namesAnnotation reports whether an expression is one annotation by its name, other than
// kubectl's: 'a' in annotations, annotations['a'], annotations[?'a'], annotations.a,
// annotations.?a.
func namesAnnotation(e ast.Expr) bool {
	of, key := selected(e)
	if e.Kind() == ast.CallKind && len(e.AsCall().Args()) == 2 {
		switch args := e.AsCall().Args(); e.AsCall().FunctionName() {
		case operators.In:
			return isAnnotations(args[1])
		case operators.Index, operators.OptIndex:
			of = args[0]
			key = stringOf(args[1])
		}
	}
	return of != nil && isAnnotations(of) && key != "" && key != corev1.LastAppliedConfigAnnotation
}
