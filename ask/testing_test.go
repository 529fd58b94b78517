package ask

import (
	"net/url"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// parsed is what JSON or YAML says.
func parsed(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// queryOf is the query of a request.
func queryOf(r apitest.Request) url.Values {
	query, _ := url.ParseQuery(r.Query)
	return query
}
