package policies

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAFieldOfTheAlphaIsNamedAsItIsNow(t *testing.T) {
	const about = "match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, "
	old := map[string][2]string{
		"spec.match.conditions": {"DeletionPolicy", "match: {conditions: [{name: c, expression: 'true'}], resources: [{apiGroups: [apps], resources: [deployments]}]}, propagation: {default: Orphan}"},
		"spec.waves[].timeout":  {"DrainPolicy", "waves: [{name: pods, timeout: 15m, resources: [{apiGroups: [''], resources: [pods]}]}]"},
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(renamed)), slices.Sorted(maps.Keys(old))); diff != "" {
		t.Errorf("the fields that are tried (-renamed +tried):\n%s", diff)
	}
	for path, p := range old {
		text := "{apiVersion: weir.dev/v1beta1, kind: " + p[0] + ", metadata: {name: p}, spec: {" + p[1] + "}}"
		want := strings.ReplaceAll(path, "[]", "[0]") + ": unknown field: since weir.dev/v1beta1 it is " + renamed[path]
		var got []string
		for _, problem := range Build(nil, sources(t, "f", text), Options{}).Problems() {
			got = append(got, problem.Field+": "+problem.Message)
		}
		if !slices.Contains(got, want) {
			t.Errorf("%s: said %q, want %q", path, got, want)
		}
	}
	if _, bad := Parse("f", []byte("{apiVersion: weir.dev/v1alpha1, kind: DeletionPolicy, metadata: {name: p}, spec: {"+about+"propagation: {default: Orphan}}}")); len(bad) != 1 ||
		bad[0].Message != `apiVersion is "weir.dev/v1alpha1", want "weir.dev/v1beta1"` {
		t.Errorf("of the old version it is said: %v", bad)
	}
}
