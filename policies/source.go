package policies

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	sigsyaml "sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// PolicyKey names a policy.
type PolicyKey struct {
	Kind, Name string
}

func (k PolicyKey) String() string {
	if k.Name == "" {
		return k.Kind
	}
	return fmt.Sprintf("%s %q", k.Kind, k.Name)
}

func (k PolicyKey) compare(o PolicyKey) int {
	return cmp.Or(compare(k.Kind, o.Kind), compare(k.Name, o.Name))
}

// kinds are the policies' kinds.
var kinds = []string{"DeletionPolicy", "DrainPolicy", "OwnerReferencePolicy"}

// Source is a policy as it was written.
type Source struct {
	// File is where it was read; empty for an object of the API server.
	File string
	// Object is the policy. It is not written to.
	Object map[string]any

	start int // lines before it in its file
}

func (s Source) key() PolicyKey {
	return PolicyKey{Kind: object(s.Object).str("kind"), Name: object(s.Object).name()}
}

// Problem is something wrong with a policy, or only likely wrong (Warning).
type Problem struct {
	Policy  PolicyKey `json:"policy"`
	File    string    `json:"file,omitempty"`
	Line    int       `json:"line,omitempty"` // of the policy's document
	Field   string    `json:"field,omitempty"`
	Message string    `json:"message"`
	Warning bool      `json:"warning,omitempty"`
}

func (p Problem) String() string {
	var parts []string
	if p.File != "" {
		at := p.File
		if p.Line > 0 {
			at = fmt.Sprintf("%s:%d", p.File, p.Line)
		}
		parts = append(parts, at)
	}
	if p.Policy != (PolicyKey{}) {
		parts = append(parts, p.Policy.String())
	}
	if p.Field != "" {
		parts = append(parts, p.Field)
	}
	if p.Warning {
		parts = append(parts, "warning")
	}
	return strings.Join(append(parts, p.Message), ": ")
}

// Parse reads the policies of a file: YAML or JSON, one or more documents. Whatever cannot be read
// is a problem; the rest is returned all the same.
func Parse(file string, data []byte) ([]Source, []Problem) {
	var sources []Source
	var problems []Problem
	for _, d := range documents(data) {
		bad := func(format string, args ...any) {
			problems = append(problems, Problem{File: file, Line: d.start + 1, Message: fmt.Sprintf(format, args...)})
		}
		js, err := sigsyaml.YAMLToJSONStrict(d.text)
		if err != nil {
			bad("read YAML: %s", oneLine(err.Error()))
			continue
		}
		var m map[string]any
		if err := decode(js, &m); err != nil {
			bad("a policy %s", err)
			continue
		}
		if m == nil {
			continue // only comments
		}
		s := Source{File: file, Object: m, start: d.start}
		if v := object(m).str("apiVersion"); v != v1beta1.GroupVersion.String() {
			bad("apiVersion is %q, want %q", v, v1beta1.GroupVersion)
			continue
		}
		if k := s.key().Kind; !slices.Contains(kinds, k) {
			bad("kind is %q, want one of %s", k, strings.Join(kinds, ", "))
			continue
		}
		sources = append(sources, s)
	}
	return sources, problems
}

type document struct {
	start int // lines before it
	text  []byte
}

// documents splits at lines that begin with ---; a document keeps its place in the file.
func documents(data []byte) []document {
	var out []document
	start, line := 0, 0
	var text []byte
	for _, l := range bytes.SplitAfter(data, []byte("\n")) {
		if bytes.HasPrefix(l, []byte("---")) {
			out = append(out, document{start, text})
			start, text = line, nil
			l = append([]byte("   "), l[3:]...)
		}
		text = append(text, l...)
		line++
	}
	return append(out, document{start, text})
}

// line returns the line at which the policy's document begins in its file; 0 without a file.
func (s Source) line() int {
	if s.File == "" {
		return 0
	}
	return s.start + 1
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
