package cel

import (
	"errors"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// KnownIn returns why an API server of a version would not accept the expression of a condition in
// a new admission policy; nil if it would.
func KnownIn(v *version.Version, text string) error {
	return expression{text, cel.BoolType}.knownIn(v)
}

// KnownIn is KnownIn for a message.
func (m *Message) KnownIn(v *version.Version) error {
	return expression{m.Expression, cel.StringType}.knownIn(v)
}

func (e expression) knownIn(v *version.Version) error {
	c := admissioncel.NewCompiler(environment.MustBaseEnvSet(v))
	r := c.CompileCELExpression(e, declared, environment.NewExpressions)
	if r.Error != nil {
		return errors.New(oneLine(r.Error.Detail))
	}
	return nil
}
