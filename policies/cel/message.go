package cel

import "github.com/google/cel-go/cel"

// Message is a compiled CEL expression that yields a text. It never changes.
type Message struct {
	Expression   string
	program      cel.Program
	metadataOnly bool
}

// MetadataOnly tells the same of it as of a Condition.
func (m *Message) MetadataOnly() bool { return m.metadataOnly }

// CompileMessage compiles an expression that yields a text. An error is one line.
func CompileMessage(text string) (*Message, error) {
	program, err := expression{text, cel.StringType}.compile()
	if err != nil {
		return nil, err
	}
	return &Message{Expression: text, program: program, metadataOnly: metadataOnly(text)}, nil
}

// Text is what a message says; empty if it fails.
func (e *Evaluation) Text(m *Message) string {
	e.full = !m.metadataOnly
	val, _, err := m.program.Eval(e)
	if err != nil {
		return ""
	}
	text, _ := val.Value().(string)
	return text
}
