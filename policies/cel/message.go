package cel

import "github.com/google/cel-go/cel"

// Message is a compiled CEL expression that yields a string. It is immutable.
type Message struct {
	Expression   string
	program      cel.Program
	metadataOnly bool
}

// MetadataOnly is Condition.MetadataOnly for a message.
func (m *Message) MetadataOnly() bool { return m.metadataOnly }

// CompileMessage compiles an expression that yields a string. An error is one line.
func CompileMessage(text string) (*Message, error) {
	program, err := expression{text, cel.StringType}.compile()
	if err != nil {
		return nil, err
	}
	return &Message{Expression: text, program: program, metadataOnly: metadataOnly(text)}, nil
}

// Text evaluates a message; empty if it fails.
func (e *Evaluation) Text(m *Message) string {
	e.full = !m.metadataOnly
	val, _, err := m.program.Eval(e)
	if err != nil {
		return ""
	}
	text, _ := val.Value().(string)
	return text
}
