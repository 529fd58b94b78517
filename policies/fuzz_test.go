package policies

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-dev/weir/policies/cel"
)

// Whatever is in a file of policies gives policies, or problems with a text, and never a panic; and whatever compiles
// can be asked.
func FuzzCompile(f *testing.F) {
	for _, name := range shippedFiles(f) {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range []string{
		"", "---", "--- ---\n", "a: *b", "&a [*a]", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy}",
		"apiVersion: weir.dev/v1beta1\nkind: DrainPolicy\nmetadata: 3\nspec: []", rulesPolicies,
		"apiVersion: weir.dev/v1beta1\nkind: DeletionPolicy\nmetadata: {name: a}\nspec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}], matchConditions: [{name: x, expression: '[1].all(x, '}]}}",
		"apiVersion: weir.dev/v1beta1\nkind: DrainPolicy\nmetadata: {name: a}\nspec: {waves: [{name: x, resources: [{resources: [configmaps]}]}]}",
		"# x\n---\n{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: a}, spec: {waves: [], x}}l\n--a:",
	} {
		f.Add([]byte(text))
	}
	files, err := filepath.Glob("testdata/semantics/*.policies.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sources, problems := Parse("f", data)
		set := Build(nil, sources, Options{})
		for _, p := range append(problems, set.Problems()...) {
			if p.Message == "" || p.Line < 1 {
				t.Errorf("a problem without text or line: %+v", p)
			}
		}
		for _, s := range set.Statuses() {
			if !s.Ready && s.Message == "" {
				t.Errorf("%s is not ready, and does not say why", s.Policy)
			}
		}
		set.Webhooks(keptKinds, nil)
		q := web(nil)
		d := set.Decide(q)
		if !d.Allowed && (d.Message == "" || d.Code == 0) {
			t.Errorf("a refusal without a reason: %+v", d)
		}
		set.Enforce(q)
		q.Operation, q.Object = Update, map[string]any{"metadata": map[string]any{"ownerReferences": []any{map[string]any{"uid": "u"}}}}
		set.Decide(q)
		set.DrainOf(q.NamespaceObject)
	})
}

// Whatever a request holds is decided, or is no question; never a panic.
func FuzzDecide(f *testing.F) {
	for _, text := range []string{
		`{"metadata":{"name":"web","uid":"u1","finalizers":["a"]}}`, `{"metadata":[]}`, `{"metadata":{"ownerReferences":{}}}`,
		`{"metadata":{"ownerReferences":[1,null,{"uid":1}],"finalizers":[null,{}],"labels":[],"annotations":3,"deletionTimestamp":{}}}`,
		`{"metadata":{"name":"веб","ownerReferences":[{"apiVersion":"a/b/c","kind":"","uid":"","blockOwnerDeletion":true,"controller":true}]}}`, `{}`, `[]`,
	} {
		f.Add("DELETE", []byte(text), []byte(text), []byte(`{"propagationPolicy":"Sideways"}`))
		f.Add("UPDATE", []byte(text), []byte(`{}`), []byte(`{}`))
		f.Add("CREATE", []byte(text), []byte(nil), []byte(nil))
	}
	set := shippedSet(f)
	f.Fuzz(func(t *testing.T, operation string, o, old, options []byte) {
		for _, r := range []string{"deployments", "namespaces", "customresourcedefinitions"} {
			q, err := FromRequest(&admissionv1.AdmissionRequest{
				Operation: admissionv1.Operation(operation), Namespace: "shop",
				Object: runtime.RawExtension{Raw: o}, OldObject: runtime.RawExtension{Raw: old}, Options: runtime.RawExtension{Raw: options},
			})
			if err != nil {
				return
			}
			q.Resource = deployments
			switch q.Resource.Resource = r; r {
			case "namespaces":
				q.Resource.Group = ""
			case "customresourcedefinitions":
				q.Resource.Group = "apiextensions.k8s.io"
			}
			d := set.Decide(q)
			if !d.Allowed && (d.Message == "" || d.Code < 400) {
				t.Errorf("a refusal without a reason: %+v", d)
			}
			if len(d.Needs) > 0 {
				q.Answers = map[Access]Answer{}
				for _, a := range d.Needs {
					q.Answers[a] = false
				}
				set.Decide(q)
			}
			set.Enforce(q)
		}
	})
}

// What is read of an object without decoding it is what the decoder makes of it.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		fullObject, `{}`, `[]`, `null`, ` {"metadata":{"a":1,"a":2.5},"metadata":{"b":[1e3,-0,{"c":[]}]}} `, `{"metadata":null,"kind":3}`, `{"metadata":[{"managedFields":1}]}`,
		`{"metadata":{"managedFields":[{"a":1}],"labels":{"\u0061\ud800":"\ud83d\ude00\/"}}}`, `{"metadata":{"name":"\ud83d\uee00"}}`, `{"metadata":{"\uD83D\uEE00":1}}`, `{"Metadata":{"name":"x"},"METADATA":{},"metadata":{"Name":1}}`,
		"{\"metadata\":{\"name\":\"\xff\"}}", `{"metadata":{"x":1e999}}`, `{"metadata":{"x":12345678901234567890}}`, `{"metadata":{"x":01}}`, `{"a":{"metadata":{}}}{}`, `{"\u006detadata":{"name":"x"}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want map[string]any
		wantErr := decode(raw, &want)
		got, rest, err := read(raw)
		if err != nil {
			if wantErr == nil {
				t.Fatalf("%s: %v", raw, err)
			}
			return
		}
		if all, err := rest.full(got); (err == nil) != (wantErr == nil) || !reflect.DeepEqual(all, want) {
			t.Fatalf("%s: all of it is %v (%v), want %v (%v)", raw, all, err, want, wantErr)
		}
		if rest == nil || wantErr != nil {
			return
		}
		for k := range want {
			if k != "apiVersion" && k != "kind" && k != "metadata" {
				delete(want, k)
			}
		}
		if m, ok := want["metadata"].(map[string]any); ok {
			delete(m, cel.ManagedFields)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: read %v, decoded %v", raw, got, want)
		}
	})
}
