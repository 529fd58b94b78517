package policies

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/cel"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// mostMessage bounds a policy's own message, in bytes, as the schema does.
const mostMessage = 1024

// compileMessage compiles the policy's own message.
func (c *compiled) compileMessage(m v1beta1.PolicyMessage) {
	c.message = m.Message
	if m.MessageExpression == "" {
		return
	}
	at := field.NewPath("spec", "messageExpression")
	var err error
	if c.says, err = cel.CompileMessage(m.MessageExpression); err != nil {
		c.problem(field.Invalid(at, field.OmitValueType{}, err.Error()))
	}
}

// messageFor returns the policy's own message about a request, in one line; "" for none. The
// expression is evaluated only if the policy is about the request's object.
func (c *compiled) messageFor(q *Question, about bool) string {
	if c.says != nil && about {
		if c.deletion != nil && q.Operation != Delete {
			q = q.deleting(q.OldObject, q.oldObject)
		}
		e := evaluate(q)
		text := strings.TrimSpace(e.Text(c.says))
		if text != "" && len(text) <= mostMessage && !strings.ContainsAny(text, "\r\n") {
			return words.Printable(text)
		}
	}
	return words.Printable(c.message)
}

// say adds the policies' own messages to findings, each once, to the policy's first finding. A
// policy that could not be judged adds none.
func (v *verdict) say(list []finding) {
	said := map[*compiled]bool{}
	for i := range list {
		f := &list[i]
		if f.by != nil && !f.unjudged && !said[f.by] {
			f.says, said[f.by] = f.by.messageFor(v.q, !v.others), true
		}
	}
}
