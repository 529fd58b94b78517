package cel

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/version"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// KnownIn says why an API server of a version would not accept an expression in an admission
// policy that is written; nil if it would.
func KnownIn(v *version.Version, text string) error {
	c := admissioncel.NewCompiler(environment.MustBaseEnvSet(v))
	r := c.CompileCELExpression(expression(text), admissioncel.OptionalVariableDeclarations{}, environment.NewExpressions)
	if r.Error != nil {
		return errors.New(oneLine(r.Error.Detail))
	}
	return nil
}
