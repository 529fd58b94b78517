package policies_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

// A breach breaks the rule of the schema that it names, and no other, by setting one field.
type breach struct {
	Rule  string // path and keyword, as rules() names it
	Set   string // path
	Value any    // nil removes
}

// schemas are what testdata/schemas.yaml has.
type schemas struct {
	Shared map[string][]breach
	Kinds  map[string]struct {
		Base     object
		Shares   []struct{ Rules, At string }
		Breaches []breach
	}
}

// of are the breaches of a kind.
func (s schemas) of(plural string) []breach {
	all := s.Kinds[plural].Breaches
	for _, share := range s.Kinds[plural].Shares {
		for _, b := range s.Shared[share.Rules] {
			b.Rule, b.Set = strings.ReplaceAll(b.Rule, "AT", share.At), strings.ReplaceAll(b.Set, "AT", share.At)
			all = append(all, b)
		}
	}
	return all
}

func TestEveryRuleOfTheSchemasIsHeldByTheServer(t *testing.T) {
	crds, err := readCRDs()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/schemas.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var have schemas
	if err := yaml.UnmarshalStrict(text, &have); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, crd := range crds {
		plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		root, _, _ := unstructured.NestedMap(versions[0].(object), "schema", "openAPIV3Schema")
		want := slices.Compact(slices.Sorted(slices.Values(rules("", root))))
		total += len(want)
		var got []string
		for _, b := range have.of(plural) {
			got = append(got, strings.ReplaceAll(b.Rule, "[0]", "[]"))
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, slices.Compact(got), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: rules of the schema, and rules that something breaks (-schema +broken):\n%s", plural, diff)
		}
		client := server.client.Resource(resource(plural))
		strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
		base := &unstructured.Unstructured{Object: have.Kinds[plural].Base}
		if _, err := client.Create(t.Context(), base, strict); err != nil {
			t.Errorf("%s: the base object is refused: %v", plural, err)
			continue
		}
		for _, b := range have.of(plural) {
			t.Run(plural+"/"+b.Rule, func(t *testing.T) { b.try(t, client, base.DeepCopy()) })
		}
	}
	if total < 30 {
		t.Errorf("found only %d rules: the walk over the schemas is broken", total)
	}
}

// try breaks the rule in a valid object, and is refused because of it.
func (b breach) try(t *testing.T, client dynamic.ResourceInterface, u *unstructured.Unstructured) {
	u.Object = put(u.Object, b.Set, b.Value).(object)
	_, err := client.Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		t.Fatalf("set %s to %v: accepted", b.Set, b.Value)
	}
	_, want, says := strings.Cut(b.Rule, " says ")
	if !says {
		want = "should match"
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("set %s: refused with\n%v\nwant a message with %q", b.Set, err, want)
	}
}

// put sets the value at a path such as a.b[0].c, or removes it if the value is nil.
func put(in any, path string, value any) any {
	if path == "" {
		return value
	}
	if rest, ok := strings.CutPrefix(path, "[0]"); ok {
		list := in.([]any)
		list[0] = put(list[0], strings.TrimPrefix(rest, "."), value)
		return list
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	m, ok := in.(object)
	if !ok {
		m = object{}
	}
	next := put(m[path[:end]], strings.TrimPrefix(path[end:], "."), value)
	if next == nil {
		delete(m, path[:end])
	} else {
		m[path[:end]] = next
	}
	return m
}

// rules are the rules of a schema that are Weir's own words, each with its path: "spec.digest
// pattern". That a list has no more than its maxItems, or a field is one of its enum, is
// Kubernetes' to hold, and what the numbers are is seen where the schema is changed.
func rules(path string, s object) []string {
	var out []string
	add := func(what string) {
		if r := path + " " + what; !strings.Contains(r, "Selector") && !strings.HasPrefix(r, "status.conditions[]") {
			out = append(out, r)
		}
	}
	if _, ok := s["pattern"]; ok {
		add("pattern")
	}
	validations, _, _ := unstructured.NestedSlice(s, "x-kubernetes-validations")
	for _, v := range validations {
		add("says " + v.(object)["message"].(string))
	}
	if items, ok := s["items"].(object); ok {
		out = append(out, rules(path+"[]", items)...)
	}
	properties, _ := s["properties"].(object)
	for name, p := range properties {
		sub := name
		if path != "" {
			sub = path + "." + name
		}
		out = append(out, rules(sub, p.(object))...)
	}
	return out
}
