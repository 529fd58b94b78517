package casefile

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/policies"
)

const protected = `apiVersion: weir.dev/v1beta1
kind: DeletionPolicy
metadata: {name: keep}
spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, protection: {confirmation: Required}}
`

// one is a file with the DELETE of a Deployment, and what is expected of it.
func one(expect string) string {
	return "policies: [p.yaml]\ncases:\n- request: {operation: DELETE, oldObject: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: u}}}\n  expect: " + expect + "\n"
}

func reads(text string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if path != "p.yaml" {
			return nil, errors.New("no such file")
		}
		return []byte(text), nil
	}
}

// A case that expects another decision says in what it differs, and passes nowhere by mistake.
func TestADifferenceNamesItsField(t *testing.T) {
	for expect, field := range map[string]string{
		"{allowed: false, code: 403, message: confirm}": "",
		"{allowed: true}":                          "allowed",
		"{code: 409}":                              "code",
		"{message: something else}":                "message",
		"{warnings: [careful]}":                    "warnings",
		"{audit: {weir.dev/none: x}}":              "audit.weir.dev/none",
		"{propagation: Orphan}":                    "propagation",
		"{by: another}":                            "by",
		"{stamp: Put}":                             "stamp",
		"{arm: true}":                              "arm",
		"{patch: [{op: remove, path: /metadata}]}": "patch",
	} {
		results, err := Run("f", []byte(one(expect)), reads(protected))
		if err != nil || len(results) != 1 {
			t.Fatalf("%s: %v, %v", expect, results, err)
		}
		got, _, _ := strings.Cut(results[0].Diff, ":\n")
		if got != field || results[0].Name != "cases[0]" || results[0].File != "f" {
			t.Errorf("%s: %+v, want a difference of %q", expect, results[0], field)
		}
	}
}

func TestWhatCannotBeRunIsAnErrorAndNoFailedCase(t *testing.T) {
	const eviction = "policies: [p.yaml]\ncases:\n- name: one\n  request: {operation: CREATE, object: {apiVersion: policy/v1, kind: Eviction, metadata: {name: a, namespace: shop}}}\n"
	for name, c := range map[string]struct{ file, policy, want string }{
		"a field that the format does not have": {one("{allowd: true}"), protected, `read cases of f: error unmarshaling JSON: while decoding JSON: json: unknown field "allowd"`},
		"no cases":                              {"policies: [p.yaml]\ncases: []\n", protected, "read cases of f: it names no policies, or has no cases"},
		"policies that are not there":           {strings.Replace(one("{}"), "p.yaml", "q.yaml", 1), protected, "read policies of f: no such file"},
		"policies that do not compile":          {one("{}"), strings.Replace(protected, "Required", "Perhaps", 1), "compile policies of f: p.yaml:1"},
		"an eviction without its pod":           {eviction, protected, `read case "one" of f: an eviction is judged as the delete of its pod: the case needs the field pod`},
		"an eviction of another pod":            {eviction + "  pod: {metadata: {name: b, namespace: shop}}\n", protected, `read case "one" of f: the request evicts "a" in namespace "shop", and pod is "b"`},
		"a namespace that is none":              {one("{}") + "  namespaceObject: {a: [}\n", protected, "read cases of f: "},
	} {
		_, err := Run("f", []byte(c.file), reads(c.policy))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// What is left out of a request is what the API server would say.
func TestARequestIsCompletedFromItsObject(t *testing.T) {
	for object, want := range map[string][4]string{
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}":      {"deployments.apps", "shop", "web", "shop"},
		"{apiVersion: v1, kind: Namespace, metadata: {name: shop}}":                            {"namespaces", "shop", "shop", ""},
		"{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}}":                     {"persistentvolumes", "", "disk", ""},
		"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: b}}": {"ingresses.networking.k8s.io", "b", "a", "b"},
	} {
		var f File
		text := "policies: [p]\ncases: [{request: {operation: DELETE, oldObject: " + object + "}}]"
		if err := yaml.UnmarshalStrict([]byte(text), &f); err != nil {
			t.Fatal(err)
		}
		q, err := f.Cases[0].question()
		if err != nil {
			t.Fatal(err)
		}
		live := unstructured.Unstructured{Object: q.NamespaceObject}
		if got := [4]string{q.Resource.GroupResource().String(), q.Namespace, q.Name, live.GetName()}; got != want {
			t.Errorf("%s: %q, want %q", object, got, want)
		}
	}
}

func TestAPermissionWithoutANamespaceIsForAll(t *testing.T) {
	asked := policies.Access{Verb: "delete", Group: "apps", Resource: "deployments", Version: "v1", Namespace: "shop", Name: "web"}
	for name, c := range map[string]struct {
		may  policies.Access
		want bool
	}{
		"everywhere":         {policies.Access{Verb: "delete", Group: "apps", Resource: "deployments"}, true},
		"there":              {policies.Access{Verb: "delete", Group: "apps", Resource: "deployments", Namespace: "shop"}, true},
		"elsewhere":          {policies.Access{Verb: "delete", Group: "apps", Resource: "deployments", Namespace: "bank"}, false},
		"of another name":    {policies.Access{Verb: "delete", Group: "apps", Resource: "deployments", Name: "db"}, false},
		"in another version": {policies.Access{Verb: "delete", Group: "apps", Resource: "deployments", Version: "v2"}, false},
		"another verb":       {policies.Access{Verb: "get", Group: "apps", Resource: "deployments"}, false},
		"a subresource":      {policies.Access{Verb: "delete", Group: "apps", Resource: "deployments", Subresource: "scale"}, false},
	} {
		if got := grants(c.may, asked); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Every field of expect and facts is in the page that explains them.
func TestTheFormatOfCasesIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/policies/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("casefile.go")
	if err != nil {
		t.Fatal(err)
	}
	fields := regexp.MustCompile("`json:\"([a-zA-Z]+)").FindAllStringSubmatch(string(source), -1)
	if len(fields) < 25 {
		t.Fatalf("found %d fields", len(fields))
	}
	for _, f := range fields {
		if f[1] != "file" && f[1] != "diff" && !strings.Contains(string(text), f[1]) {
			t.Errorf("field %s is not documented", f[1])
		}
	}
}
