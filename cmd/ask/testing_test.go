package ask

import (
	"testing"

	"sigs.k8s.io/yaml"
)

// parsed is what JSON or YAML says.
func parsed(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
