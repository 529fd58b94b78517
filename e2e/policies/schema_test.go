package policies_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// base is a valid object of each kind, with every part that a rule is about.
var base = map[string]string{
	"deletionpolicies": `
apiVersion: weir.dev/v1alpha1
kind: DeletionPolicy
metadata: {name: base}
spec:
  match:
    resources: [{apiGroups: [apps], resources: [deployments]}]
    excludeResources: [{apiGroups: [batch], resources: [jobs]}]
    conditions: [{name: one, expression: "true"}]
  propagation:
    default: Foreground
    allowed: [Foreground, Orphan]
    dependents: [{apiGroups: [""], resources: [persistentvolumeclaims], action: Orphan}]
  protection: {maxDependents: 3, confirmation: Required}
  brake: {maxObjects: 500}
`,
	"ownerreferencepolicies": `
apiVersion: weir.dev/v1alpha1
kind: OwnerReferencePolicy
metadata: {name: base}
spec:
  match:
    resources: [{apiGroups: [apps], resources: [deployments]}]
    excludeResources: [{apiGroups: [batch], resources: [jobs]}]
    conditions: [{name: one, expression: "true"}]
  blockOwnerDeletion: RequirePermission
  rules: {dangling: Deny}
`,
	"drainpolicies": `
apiVersion: weir.dev/v1alpha1
kind: DrainPolicy
metadata: {name: base}
spec:
  waves:
  - {name: pods, resources: [{apiGroups: [""], resources: [pods]}], timeout: 5m, onTimeout: Proceed}
`,
	"heldcollections": `
apiVersion: weir.dev/v1alpha1
kind: HeldCollection
metadata: {name: base}
spec: {decision: Proceed, digest: 0123456789abcdef}
`,
}

// A breach breaks the rule of the schema that it names, and no other, by setting one field.
type breach struct {
	rule  string // path and keyword, as rules() names it
	set   string // path = value; nil removes
	value any
	want  string
}

func many(n int, item func(i int) any) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = item(i)
	}
	return out
}

func word(i int) any { return "w" + strconv.Itoa(i) }

type object = map[string]any

func rule(i int) any { return object{"apiGroups": []any{""}, "resources": []any{word(i)}} }

var long = strings.Repeat("a", 5000)

// resourceRules are the breaches of one list of ResourceRule at a path; limits of the list itself are its owner's.
func resourceRules(at string) []breach {
	first, items := at+"[0]", at+"[]"
	return []breach{
		{items + " required apiGroups", first + ".apiGroups", nil, "apiGroups: Required value"},
		{items + " required resources", first + ".resources", nil, "resources: Required value"},
		{items + ".apiGroups minItems", first + ".apiGroups", []any{}, "should have at least 1 items"},
		{items + ".apiGroups maxItems", first + ".apiGroups", many(33, word), "must have at most 32 items"},
		{items + ".apiGroups list-type set", first + ".apiGroups", []any{"apps", "apps"}, "Duplicate value"},
		{items + ".apiGroups[] maxLength", first + ".apiGroups", []any{long[:254]}, "may not be more than 253"},
		{items + ".apiGroups[] pattern", first + ".apiGroups", []any{"Apps"}, "should match"},
		{items + ".resources minItems", first + ".resources", []any{}, "should have at least 1 items"},
		{items + ".resources maxItems", first + ".resources", many(65, word), "must have at most 64 items"},
		{items + ".resources list-type set", first + ".resources", []any{"pods", "pods"}, "Duplicate value"},
		{items + ".resources[] maxLength", first + ".resources", []any{long[:254]}, "may not be more than 253"},
		{items + ".resources[] pattern", first + ".resources", []any{"pods/status"}, "should match"},
		{items + " says '*' stands for every API group: name it alone", first + ".apiGroups", []any{"*", "apps"}, "name it alone"},
		{items + " says '*' stands for every resource: name it alone", first + ".resources", []any{"*", "pods"}, "name it alone"},
	}
}

// sets are the breaches of a list of names, of which each may have so many characters; 0 for names that have a pattern.
func sets(at string, most int) []breach {
	name := func(i int) any { return "ns/" + word(i).(string) }
	out := []breach{
		{at + " minItems", at, []any{}, "should have at least 1 items"},
		{at + " maxItems", at, many(65, name), "must have at most 64 items"},
		{at + " list-type set", at, []any{"ns/a", "ns/a"}, "Duplicate value"},
	}
	if most > 0 {
		out = append(out, breach{at + "[] minLength", at, []any{""}, "should be at least 1 chars"},
			breach{at + "[] maxLength", at, []any{long[:most+1]}, fmt.Sprintf("may not be more than %d", most)})
	}
	return out
}

// matchRules are the breaches of Match.
func matchRules() []breach {
	all := slices.Concat(resourceRules("spec.match.resources"), resourceRules("spec.match.excludeResources"),
		sets("spec.match.resourceNames", 253), sets("spec.match.excludeUsers", 512), sets("spec.match.excludeGroups", 512), sets("spec.match.excludeServiceAccounts", 0))
	return append(all, []breach{
		{"spec.match.excludeResources minItems", "spec.match.excludeResources", []any{}, "should have at least 1 items"},
		{"spec.match.excludeResources maxItems", "spec.match.excludeResources", many(65, rule), "must have at most 64 items"},
		{"spec.match.excludeServiceAccounts[] maxLength", "spec.match.excludeServiceAccounts", []any{"a/" + long[:316]}, "may not be more than 317"},
		{"spec.match.excludeServiceAccounts[] pattern", "spec.match.excludeServiceAccounts", []any{"ci:robot"}, "should match"},
		{"spec.match.scope enum", "spec.match.scope", "Global", `Unsupported value: "Global"`},
		{"spec.match.kubernetesControllers enum", "spec.match.kubernetesControllers", "Ask", `Unsupported value: "Ask"`},
		{"spec required match", "spec.match", nil, "spec.match: Required value"},
		{"spec.match required resources", "spec.match.resources", nil, "spec.match.resources: Required value"},
		{"spec.match.resources minItems", "spec.match.resources", []any{}, "should have at least 1 items"},
		{"spec.match.resources maxItems", "spec.match.resources", many(65, rule), "must have at most 64 items"},
		{"spec.match.resources says the API server asks no webhook about webhook configurations and admission policies, so no policy of Weir holds for them: a ValidatingAdmissionPolicy can guard webhook configurations",
			"spec.match.resources[0].apiGroups", []any{"apps", "admissionregistration.k8s.io"}, "asks no webhook about"},
		{"spec.match.conditions maxItems", "spec.match.conditions", many(17, func(i int) any { return object{"name": word(i), "expression": "true"} }), "must have at most 16 items"},
		{"spec.match.conditions list-type map", "spec.match.conditions", many(2, func(int) any { return object{"name": "a", "expression": "true"} }), "Duplicate value"},
		{"spec.match.conditions[] required name", "spec.match.conditions[0].name", nil, "name: Required value"},
		{"spec.match.conditions[] required expression", "spec.match.conditions[0].expression", nil, "expression: Required value"},
		{"spec.match.conditions[].name minLength", "spec.match.conditions[0].name", "", "should be at least 1 chars"},
		{"spec.match.conditions[].name maxLength", "spec.match.conditions[0].name", long[:64], "may not be more than 63"},
		{"spec.match.conditions[].name pattern", "spec.match.conditions[0].name", "a b", "should match"},
		{"spec.match.conditions[].expression minLength", "spec.match.conditions[0].expression", "", "should be at least 1 chars"},
		{"spec.match.conditions[].expression maxLength", "spec.match.conditions[0].expression", long[:4097], "may not be more than 4096"},
	}...)
}

var breaches = map[string][]breach{
	"deletionpolicies": slices.Concat(matchRules(), resourceRules("spec.propagation.dependents"), validationActions, []breach{
		{" required spec", "spec", nil, "spec: Required value"},
		{"spec.priority minimum", "spec.priority", int64(-1000001), "should be greater than or equal to -1000000"},
		{"spec.priority maximum", "spec.priority", int64(1000001), "should be less than or equal to 1000000"},
		{"spec.propagation.default enum", "spec.propagation.default", "Sideways", `Unsupported value: "Sideways"`},
		{"spec.propagation.allowed minItems", "spec.propagation.allowed", []any{}, "should have at least 1 items"},
		{"spec.propagation.allowed maxItems", "spec.propagation.allowed", []any{"Foreground", "Orphan", "Background", "Orphan"}, "must have at most 3 items"},
		{"spec.propagation.allowed list-type set", "spec.propagation.allowed", []any{"Foreground", "Foreground"}, "Duplicate value"},
		{"spec.propagation.allowed[] enum", "spec.propagation.allowed", []any{"Foreground", "Up"}, `Unsupported value: "Up"`},
		{"spec.propagation.dependents minItems", "spec.propagation.dependents", []any{}, "should have at least 1 items"},
		{"spec.propagation.dependents maxItems", "spec.propagation.dependents", many(65, func(i int) any {
			return object{"apiGroups": []any{""}, "resources": []any{word(i)}, "action": "Orphan"}
		}), "must have at most 64 items"},
		{"spec.propagation.dependents[] required action", "spec.propagation.dependents[0].action", nil, "action: Required value"},
		{"spec.propagation.dependents[].action enum", "spec.propagation.dependents[0].action", "Keep", `Unsupported value: "Keep"`},
		{"spec.propagation says set at least one of default, allowed and dependents", "spec.propagation", object{}, "set at least one of default, allowed and dependents"},
		{"spec.propagation says allowed must contain default: a delete that asks for nothing would be refused", "spec.propagation.allowed", []any{"Orphan"}, "allowed must contain default"},
		{"spec.protection.maxDependents minimum", "spec.protection.maxDependents", int64(-1), "should be greater than or equal to 0"},
		{"spec.protection.maxDependents maximum", "spec.protection.maxDependents", int64(1000001), "should be less than or equal to 1000000"},
		{"spec.protection.confirmation enum", "spec.protection.confirmation", "Twice", `Unsupported value: "Twice"`},
		{"spec.protection.inCascades enum", "spec.protection.inCascades", "Never", `Unsupported value: "Never"`},
		{"spec.protection says set maxDependents, or confirmation to Required, or both", "spec.protection", object{"confirmation": "None"}, "set maxDependents, or confirmation to Required"},
		{"spec.brake required maxObjects", "spec.brake", object{}, "spec.brake.maxObjects: Required value"},
		{"spec.brake.maxObjects minimum", "spec.brake.maxObjects", int64(-1), "should be greater than or equal to 0"},
		{"spec.brake.maxObjects maximum", "spec.brake.maxObjects", int64(1000001), "should be less than or equal to 1000000"},
		{"spec.failurePolicy enum", "spec.failurePolicy", "Panic", `Unsupported value: "Panic"`},
		{"spec says set propagation, protection or brake: a policy without any asks for nothing", "spec", object{"match": object{"resources": []any{rule(0)}}}, "a policy without any asks for nothing"},
		{"status.matched minimum", "status.matched", int64(-1), "should be greater than or equal to 0"},
		{"status.stamped minimum", "status.stamped", int64(-1), "should be greater than or equal to 0"},
		statusConditions,
	}),
	"ownerreferencepolicies": slices.Concat(matchRules(), validationActions, []breach{
		{" required spec", "spec", nil, "spec: Required value"},
		{"spec.blockOwnerDeletion enum", "spec.blockOwnerDeletion", "Maybe", `Unsupported value: "Maybe"`},
		{"spec.changes enum", "spec.changes", "Maybe", `Unsupported value: "Maybe"`},
		{"spec.failurePolicy enum", "spec.failurePolicy", "Panic", `Unsupported value: "Panic"`},
		{"spec.rules.dangling enum", "spec.rules.dangling", "No", `Unsupported value: "No"`},
		{"spec.rules.mismatch enum", "spec.rules.mismatch", "No", `Unsupported value: "No"`},
		{"spec.rules.otherNamespace enum", "spec.rules.otherNamespace", "No", `Unsupported value: "No"`},
		{"spec.rules.namespacedOwner enum", "spec.rules.namespacedOwner", "No", `Unsupported value: "No"`},
		{"spec.rules.manyControllers enum", "spec.rules.manyControllers", "No", `Unsupported value: "No"`},
		{"spec.rules.manyOwners enum", "spec.rules.manyOwners", "No", `Unsupported value: "No"`},
		{"spec.rules.unservedVersion enum", "spec.rules.unservedVersion", "No", `Unsupported value: "No"`},
		{"spec.rules.cycle enum", "spec.rules.cycle", "No", `Unsupported value: "No"`},
		{"spec.rules says set at least one rule to Audit, Warn or Deny", "spec.rules", object{}, "set at least one rule to Audit, Warn or Deny"},
		{"spec says set blockOwnerDeletion, changes or rules: a policy without any asks for nothing", "spec", object{"match": object{"resources": []any{rule(0)}}}, "a policy without any asks for nothing"},
		{"status.matched minimum", "status.matched", int64(-1), "should be greater than or equal to 0"},
		statusConditions,
	}),
	"drainpolicies": append(resourceRules("spec.waves[0].resources"), []breach{
		{" required spec", "spec", nil, "spec: Required value"},
		{"spec required waves", "spec.waves", nil, "spec.waves: Required value"},
		{"spec.waves minItems", "spec.waves", []any{}, "should have at least 1 items"},
		{"spec.waves maxItems", "spec.waves", many(17, func(i int) any { return object{"name": word(i), "resources": []any{rule(i)}} }), "must have at most 16 items"},
		{"spec.waves list-type map", "spec.waves", many(2, func(i int) any { return object{"name": "a", "resources": []any{rule(i)}} }), "Duplicate value"},
		{"spec.waves[] required name", "spec.waves[0].name", nil, "name: Required value"},
		{"spec.waves[] required resources", "spec.waves[0].resources", nil, "resources: Required value"},
		{"spec.waves[].name minLength", "spec.waves[0].name", "", "should be at least 1 chars"},
		{"spec.waves[].name maxLength", "spec.waves[0].name", long[:64], "may not be more than 63"},
		{"spec.waves[].name pattern", "spec.waves[0].name", "First", "should match"},
		{"spec.waves[].resources minItems", "spec.waves[0].resources", []any{}, "should have at least 1 items"},
		{"spec.waves[].resources maxItems", "spec.waves[0].resources", many(65, rule), "must have at most 64 items"},
		{"spec.waves[].timeout maxLength", "spec.waves[0].timeout", strings.Repeat("1s", 17), "may not be more than 32"},
		{"spec.waves[].timeout pattern", "spec.waves[0].timeout", "soon", "should match"},
		{"spec.waves[].timeout says timeout must be between 1s and 24h", "spec.waves[0].timeout", "25h", "timeout must be between 1s and 24h"},
		{"spec.waves[].onTimeout enum", "spec.waves[0].onTimeout", "Give up", `Unsupported value: "Give up"`},
		{"spec.waves[] says onTimeout Proceed needs a timeout: without one the wave waits for ever", "spec.waves[0].timeout", nil, "onTimeout Proceed needs a timeout"},
		{"status.matched minimum", "status.matched", int64(-1), "should be greater than or equal to 0"},
		{"status.waves maxLength", "status.waves", long[:2049], "may not be more than 2048"},
		statusConditions,
	}...),
	"heldcollections": heldRules,
}

// heldRules are the breaches of HeldCollection.
var heldRules = []breach{
	{"spec says a decision needs the digest of what it is about: the status has it", "spec.digest", nil, "a decision needs the digest"},
	{"spec.decision enum", "spec.decision", "Perhaps", `Unsupported value: "Perhaps"`},
	{"spec.digest maxLength", "spec.digest", long[:65], "may not be more than 64"},
	{"spec.digest pattern", "spec.digest", "all", "should match"},
	{"status.conclusion maxLength", "status.conclusion", long[:129], "may not be more than 128"},
	{"status.message maxLength", "status.message", long[:2049], "may not be more than 2048"},
	{"status.writer maxLength", "status.writer", long[:129], "may not be more than 128"},
	{"status.digest maxLength", "status.digest", long[:65], "may not be more than 64"},
	{"status.kinds maxItems", "status.kinds", many(21, func(i int) any { return object{"resource": word(i), "objects": int64(1)} }), "must have at most 20 items"},
	{"status.kinds[] required resource", "status.kinds", []any{object{"objects": int64(1)}}, "resource: Required value"},
	{"status.kinds[] required objects", "status.kinds", []any{object{"resource": "pods"}}, "objects: Required value"},
	{"status.kinds[].resource maxLength", "status.kinds", []any{object{"resource": long[:318], "objects": int64(1)}}, "may not be more than 317"},
	{"status.samples maxItems", "status.samples", many(11, func(i int) any { return object{"object": word(i), "why": "w"} }), "must have at most 10 items"},
	{"status.samples[] required object", "status.samples", []any{object{"why": "w"}}, "object: Required value"},
	{"status.samples[] required why", "status.samples", []any{object{"object": "pods a/b"}}, "why: Required value"},
	{"status.samples[].object maxLength", "status.samples", []any{object{"object": long[:641], "why": "w"}}, "may not be more than 640"},
	{"status.samples[].why maxLength", "status.samples", []any{object{"object": "pods a/b", "why": long[:1025]}}, "may not be more than 1024"},
	{"status.samples[].writtenBy maxLength", "status.samples", []any{object{"object": "pods a/b", "why": "w", "writtenBy": long[:257]}}, "may not be more than 256"},
}

// validationActions is held alike by the policies that have it.
var validationActions = []breach{
	{"spec.validationActions minItems", "spec.validationActions", []any{}, "should have at least 1 items"},
	{"spec.validationActions maxItems", "spec.validationActions", []any{"Deny", "Audit", "Warn"}, "must have at most 2 items"},
	{"spec.validationActions list-type set", "spec.validationActions", []any{"Deny", "Deny"}, "Duplicate value"},
	{"spec.validationActions[] enum", "spec.validationActions", []any{"Shout"}, `Unsupported value: "Shout"`},
	{"spec.validationActions says Deny and Warn cannot be used together: a refusal already says what a warning would", "spec.validationActions", []any{"Deny", "Warn"}, "Deny and Warn cannot be used together"},
}

var statusConditions = breach{"status.conditions maxItems", "status.conditions", many(9, condition), "must have at most 8 items"}

func condition(i int) any {
	return object{
		"type": fmt.Sprint("T", i), "status": "True", "reason": "R", "message": "",
		"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": int64(1),
	}
}

// uncounted are parts whose rules are Kubernetes' own, and a list that two conditions of one type would break.
func uncounted(path string) bool {
	return strings.Contains(path, "Selector") || strings.HasPrefix(path, "status.conditions[]") || strings.HasPrefix(path, "status.conditions list-type")
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
		kept := mustYAML(t, base[plural])
		kept.SetName("status-" + plural)
		if _, err := client.Create(t.Context(), kept, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Errorf("%s: the base object is refused: %v", plural, err)
			continue
		}
		for _, b := range breaches[plural] {
			t.Run(plural+"/"+b.rule, func(t *testing.T) { b.try(t, client, plural) })
		}
	}
	if total < 100 {
		t.Errorf("found only %d rules: the walk over the schemas is broken", total)
	}
}

func (b breach) try(t *testing.T, client dynamic.ResourceInterface, plural string) {
	var err error
	dryRun := []string{metav1.DryRunAll}
	if strings.HasPrefix(b.set, "status") {
		u, geterr := client.Get(t.Context(), "status-"+plural, metav1.GetOptions{})
		if geterr != nil {
			t.Fatal(geterr)
		}
		u.Object = put(u.Object, b.set, b.value).(object)
		_, err = client.UpdateStatus(t.Context(), u, metav1.UpdateOptions{DryRun: dryRun})
	} else {
		u := mustYAML(t, base[plural])
		u.SetName("breach")
		u.Object = put(u.Object, b.set, b.value).(object)
		_, err = client.Create(t.Context(), u, metav1.CreateOptions{DryRun: dryRun})
	}
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

// rules are all rules of a schema, each with its path: "spec.priority maximum".
func rules(path string, s object) []string {
	var out []string
	add := func(what string) {
		if r := path + " " + what; !uncounted(r) {
			out = append(out, r)
		}
	}
	for _, k := range []string{"enum", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern", "minProperties", "maxProperties"} {
		if _, ok := s[k]; ok {
			add(k)
		}
	}
	if lt, _ := s["x-kubernetes-list-type"].(string); lt == "set" || lt == "map" {
		add("list-type " + lt)
	}
	required, _, _ := unstructured.NestedStringSlice(s, "required")
	for _, r := range required {
		add("required " + r)
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
