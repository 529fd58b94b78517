package policies

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// TestManyOwnersAreFound: it is about all of them, whoever added which.
func TestManyOwnersAreFound(t *testing.T) {
	set := Build(nil, sources(t, "f", "{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: o}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, rules: {manyOwners: Deny}}}"), Options{})
	refs := func(n int) (out []any) {
		for i := range n {
			out = append(out, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": fmt.Sprint(i)})
		}
		return out
	}
	for n, refused := range map[int]bool{mostOwners: false, mostOwners + 1: true, 30_000: true} {
		q := web(nil)
		q.Operation, q.OldObject, q.Object = Update, map[string]any{"metadata": map[string]any{"ownerReferences": refs(n - 1)}}, map[string]any{"metadata": map[string]any{"ownerReferences": refs(n)}}
		if d := set.Decide(q); d.Allowed == refused || refused && !strings.Contains(d.Message, fmt.Sprintf("has %d owner references, and Weir expects at most 64", n)) {
			t.Errorf("%d: %+v", n, d)
		}
	}
}

// TestARuleAboutOwnersIsKnownWhereverRulesAreListed: a rule that is left out there would pass for
// one that refuses nothing, and fail open; or could not be set alone; or would be asked about a
// graph that the webhook does not hold.
func TestARuleAboutOwnersIsKnownWhereverRulesAreListed(t *testing.T) {
	ofKinds := map[string]bool{"namespacedOwner": true, "manyControllers": true, "manyOwners": true, "unservedVersion": true} // all others are about owners themselves
	crd, err := os.ReadFile("crds/weir.dev_ownerreferencepolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, alone, _ := strings.Cut(string(crd), "[self.")
	alone, _, found := strings.Cut(alone, "]")
	if !found {
		t.Fatal("the definition has no list of the rules of which one has to be set")
	}
	rules := reflect.TypeFor[v1beta1.OwnerRules]()
	for i := range rules.NumField() {
		rule, _, _ := strings.Cut(rules.Field(i).Tag.Get("json"), ",")
		t.Run(rule, func(t *testing.T) {
			set := Build(nil, sources(t, "f", fmt.Sprintf("{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: o}, spec: "+
				"{match: {resources: [{apiGroups: [''], resources: [pods]}]}, rules: {%s: Deny}, validationActions: [Warn], failurePolicy: Fail}}", rule)), Options{})
			if !set.Refuses("") {
				t.Error("a policy with this rule alone, and Deny, passes for one that refuses nothing: see refuses")
			}
			if set.NeedsGraph() == ofKinds[rule] {
				t.Errorf("asks for the graph: %t: see asksForOwners, or name the rule in this test", set.NeedsGraph())
			}
			if !strings.Contains(" "+strings.NewReplacer("self.", "", ",", " ").Replace(alone)+" ", " "+rule+" ") {
				t.Errorf("it cannot be set alone: the definition knows %q: see the XValidation of OwnerRules", alone)
			}
		})
	}
}
