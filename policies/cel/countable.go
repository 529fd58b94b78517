package cel

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	corev1 "k8s.io/api/core/v1"
)

// The status of a policy is read by people who may not read the objects that it is about, and its
// conditions are theirs: a number of objects would answer whatever they ask. So it is told only
// where conditions ask about what is no secret.

// Countable tells whether it may be told for how many objects the condition holds, or fails: it
// looks at nothing but their metadata, and not at the annotation in which kubectl keeps all of an
// object.
func (c *Condition) Countable() bool { return c.countable }

// countable is that of an expression which is metadataOnly: whichever annotations it reads, it
// names.
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

// isAnnotations: oldObject.metadata.annotations, oldObject.metadata.?annotations. has(…) is none.
func isAnnotations(e ast.Expr) bool {
	_, field := selected(e)
	return field == "annotations" && selectsMetadata(e) && (e.Kind() != ast.SelectKind || !e.AsSelect().IsTestOnly())
}

// namesAnnotation: 'a' in annotations, annotations['a'], annotations[?'a'], annotations.a,
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
