// Command values writes docs/values.md from the chart's values.yaml: every value, its default, and
// the comment above it. A mapping in block style is a section of values; one in flow style, {a: b},
// is a value.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: values VALUES PAGE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "values:", err)
		os.Exit(1)
	}
}

func write(values, to string) error {
	data, err := os.ReadFile(values)
	if err != nil {
		return err
	}
	text, err := page(data)
	if err != nil {
		return fmt.Errorf("%s: %w", values, err)
	}
	return os.WriteFile(to, []byte(text), 0o644)
}

const intro = `# Values of the chart

The chart rejects every other value. The files of [charts/ci](../charts/ci) are sets that are tested
together.

| value | default | what it does |
|---|---|---|
`

// page returns docs/values.md.
func page(values []byte) (string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(values, &doc); err != nil {
		return "", err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return "", errors.New("not a mapping")
	}
	var out strings.Builder
	out.WriteString(intro)
	if err := rows(&out, doc.Content[0], ""); err != nil {
		return "", err
	}
	return out.String(), nil
}

// rows writes a row for each value of a section.
func rows(out *strings.Builder, section *yaml.Node, prefix string) error {
	for i := 0; i+1 < len(section.Content); i += 2 {
		key, value := section.Content[i], section.Content[i+1]
		name := prefix + key.Value
		if value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 {
			if err := rows(out, value, name+"."); err != nil {
				return err
			}
			continue
		}
		says := sentence(key.HeadComment)
		if says == "" {
			return fmt.Errorf("line %d: %s has no comment that says what it does", key.Line, name)
		}
		def, err := inline(value)
		if err != nil {
			return fmt.Errorf("line %d: %s: %w", key.Line, name, err)
		}
		fmt.Fprintf(out, "| `%s` | `%s` | %s |\n", name, def, strings.ReplaceAll(says, "|", `\|`))
	}
	return nil
}

// sentence returns the comment right above a value, as one line. What an empty line separates from
// it is about more than the value.
func sentence(comment string) string {
	paragraphs := strings.Split(comment, "\n\n")
	var words []string
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		words = append(words, strings.Fields(strings.TrimLeft(line, "#"))...)
	}
	return strings.Join(words, " ")
}

// inline returns a default as one line of YAML.
func inline(value *yaml.Node) (string, error) {
	flow(value)
	data, err := yaml.Marshal(value)
	if err != nil {
		return "", err
	}
	return strings.Join(strings.Fields(string(data)), " "), nil
}

// flow makes a value print on one line, without comments.
func flow(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	if n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		flow(c)
	}
}
