package policies_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// base is a valid object of each kind, with every part that a rule is about.
var base = map[string]string{
	"deletionpolicies": `
apiVersion: weir.dev/v1beta1
kind: DeletionPolicy
metadata: {name: base}
spec:
  match:
    resources: [{apiGroups: [apps], resources: [deployments]}]
    excludeResources: [{apiGroups: [batch], resources: [jobs]}]
    matchConditions: [{name: one, expression: "true"}]
  propagation:
    default: Foreground
    allowed: [Foreground, Orphan]
    dependents: [{apiGroups: [""], resources: [persistentvolumeclaims], action: Orphan}]
  protection: {maxDependents: 3, confirmation: Required}
  brake: {maxObjects: 500}
  archive: {exclude: [{apiGroups: [""], resources: [pods]}]}
  message: ask storage
  messageExpression: "'ask ' + oldObject.metadata.name"
`,
	"ownerreferencepolicies": `
apiVersion: weir.dev/v1beta1
kind: OwnerReferencePolicy
metadata: {name: base}
spec:
  match:
    resources: [{apiGroups: [apps], resources: [deployments]}]
    excludeResources: [{apiGroups: [batch], resources: [jobs]}]
    matchConditions: [{name: one, expression: "true"}]
  blockOwnerDeletion: RequirePermission
  rules: {dangling: Deny}
  message: ask storage
`,
	"drainpolicies": `
apiVersion: weir.dev/v1beta1
kind: DrainPolicy
metadata: {name: base}
spec:
  waves:
  - {name: pods, resources: [{apiGroups: [""], resources: [pods]}], timeoutSeconds: 300, onTimeout: Proceed}
`,
	"heldcollections": `
apiVersion: weir.dev/v1beta1
kind: HeldCollection
metadata: {name: base}
spec: {decision: Proceed, digest: 0123456789abcdef}
`,
	"deletedtrees": `
apiVersion: weir.dev/v1beta1
kind: DeletedTree
metadata: {name: base}
spec:
  root: {group: apps, version: v1, resource: deployments, kind: Deployment, namespace: shop, name: web, uid: "1"}
  deletionTime: "2026-01-01T00:00:00Z"
  expirationTime: "2026-01-08T00:00:00Z"
  key: AAAA
`,
	"archivechunks": `
apiVersion: weir.dev/v1beta1
kind: ArchiveChunk
metadata: {name: base-00000}
spec: {tree: base, sequence: 0, last: true, sealed: AAAA}
`,
}

// A breach breaks the rule of the schema that it names, and no other, by setting one field.
type breach struct {
	rule  string // path and keyword, as rules() names it
	set   string // path = value; nil removes
	value any
	want  string
}

type object = map[string]any

// resourceRules are the breaches of one list of ResourceRule at a path.
func resourceRules(at string) []breach {
	first, items := at+"[0]", at+"[]"
	return []breach{
		{items + ".apiGroups[] pattern", first + ".apiGroups", []any{"Apps"}, "should match"},
		{items + ".resources[] pattern", first + ".resources", []any{"pods/status"}, "should match"},
		{items + " says '*' stands for every API group: name it alone", first + ".apiGroups", []any{"*", "apps"}, "name it alone"},
		{items + " says '*' stands for every resource: name it alone", first + ".resources", []any{"*", "pods"}, "name it alone"},
	}
}

// matchRules are the breaches of Match.
func matchRules() []breach {
	return append(slices.Concat(resourceRules("spec.match.resources"), resourceRules("spec.match.excludeResources")), []breach{
		{"spec.match.serviceAccounts[] pattern", "spec.match.serviceAccounts", []any{"ci:robot"}, "should match"},
		{"spec.match.excludeServiceAccounts[] pattern", "spec.match.excludeServiceAccounts", []any{"ci:robot"}, "should match"},
		{"spec.match.resources says the API server asks no webhook about webhook configurations and admission policies, so no policy of Weir holds for them: a ValidatingAdmissionPolicy can guard webhook configurations",
			"spec.match.resources[0].apiGroups", []any{"apps", "admissionregistration.k8s.io"}, "asks no webhook about"},
		{"spec.match.matchConditions[].name pattern", "spec.match.matchConditions[0].name", "a b", "should match"},
	}...)
}

var breaches = map[string][]breach{
	"deletionpolicies": slices.Concat(matchRules(), resourceRules("spec.propagation.dependents"), resourceRules("spec.archive.exclude"), validationActions, []breach{
		{"spec.propagation says set at least one of default, allowed and dependents, or annotation to Allow", "spec.propagation", object{}, "set at least one of default, allowed and dependents"},
		{"spec.propagation says allowed must contain default: a delete that asks for nothing would be refused", "spec.propagation.allowed", []any{"Orphan"}, "allowed must contain default"},
		{"spec.protection says confirmationValidForSeconds needs confirmation Required or SecondPerson", "spec.protection", object{"maxDependents": int64(1), "confirmationValidForSeconds": int64(60)}, "confirmationValidForSeconds needs confirmation"},
		{"spec.protection says set maxDependents, or confirmation to Required or SecondPerson, or both", "spec.protection", object{"confirmation": "None"}, "set maxDependents, or confirmation to Required"},
		{"spec says a policy for some users can have protection and propagation.allowed: what brake, archive and the rest of propagation do is prepared on the object, before anyone asks to delete it",
			"spec.match.users", []any{"bob"}, "a policy for some users can have protection and propagation.allowed"},
		{"spec says set propagation, protection, brake or archive: a policy without any asks for nothing", "spec", object{"match": object{"resources": []any{object{"apiGroups": []any{""}, "resources": []any{"pods"}}}}}, "a policy without any asks for nothing"},
	}),
	"ownerreferencepolicies": slices.Concat(matchRules(), validationActions, []breach{
		{"spec.rules says set at least one rule to Audit, Warn or Deny", "spec.rules", object{}, "set at least one rule to Audit, Warn or Deny"},
		{"spec says set blockOwnerDeletion, changes or rules: a policy without any asks for nothing", "spec", object{"match": object{"resources": []any{object{"apiGroups": []any{""}, "resources": []any{"pods"}}}}}, "a policy without any asks for nothing"},
	}),
	"drainpolicies": append(resourceRules("spec.waves[0].resources"), []breach{
		{"spec.waves[].name pattern", "spec.waves[0].name", "First", "should match"},
		{"spec.waves[] says onTimeout Proceed needs timeoutSeconds: without it the wave waits for ever", "spec.waves[0].timeoutSeconds", nil, "onTimeout Proceed needs timeoutSeconds"},
	}...),
	"heldcollections": {
		{"spec says a decision needs a digest: copy it from the status", "spec.digest", nil, "a decision needs a digest"},
		{"spec.digest pattern", "spec.digest", "all", "should match"},
	},
}

// validationActions and the message are held alike by the policies that have them.
var validationActions = []breach{
	{"spec.message pattern", "spec.message", "two\nlines", "should match"},
	{"spec.validationActions says Deny and Warn cannot be used together: a refusal already says what a warning would", "spec.validationActions", []any{"Deny", "Warn"}, "Deny and Warn cannot be used together"},
}

func TestEveryRuleOfTheSchemasIsHeldByTheServer(t *testing.T) {
	crds, err := readCRDs()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, crd := range crds {
		plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		root, _, _ := unstructured.NestedMap(versions[0].(object), "schema", "openAPIV3Schema")
		want := rules("", root)
		total += len(want)
		var got []string
		for _, b := range breaches[plural] {
			got = append(got, strings.ReplaceAll(b.rule, "[0]", "[]"))
		}
		for _, r := range want {
			if !slices.Contains(got, r) {
				t.Errorf("%s: nothing breaks the rule %q", plural, r)
			}
		}
		for _, r := range got {
			if !slices.Contains(want, r) {
				t.Errorf("%s: there is no rule %q", plural, r)
			}
		}
		client := server.client.Resource(resource(plural))
		strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
		if _, err := client.Create(t.Context(), mustYAML(t, base[plural]), strict); err != nil {
			t.Errorf("%s: the base object is refused: %v", plural, err)
			continue
		}
		for _, b := range breaches[plural] {
			t.Run(plural+"/"+b.rule, func(t *testing.T) { b.try(t, client, plural) })
		}
	}
	if total < 30 {
		t.Errorf("found only %d rules: the walk over the schemas is broken", total)
	}
}

func (b breach) try(t *testing.T, client dynamic.ResourceInterface, plural string) {
	u := mustYAML(t, base[plural])
	u.Object = put(u.Object, b.set, b.value).(object)
	_, err := client.Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		t.Fatalf("set %s to %v: accepted", b.set, b.value)
	}
	if !strings.Contains(err.Error(), b.want) {
		t.Errorf("set %s: refused with\n%v\nwant a message with %q", b.set, err, b.want)
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
