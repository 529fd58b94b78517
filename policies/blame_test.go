package policies

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Whoever writes an object decides how much a condition costs on it. To pad it must not be a way
// past the policy.
func TestConditionThatCostsTooMuchRefusesWhateverTheFailurePolicy(t *testing.T) {
	for _, failure := range []string{"Ignore", "Fail"} {
		for expression, says := range map[string]string{
			"oldObject.spec.list.all(a, oldObject.spec.list.all(b, !oldObject.spec.text.contains(\"x\")))": "actual cost limit exceeded",
			"oldObject.metadata.none == 1": "no such key",
		} {
			text := strings.Replace(delpol("p", "protection: {confirmation: Required}, failurePolicy: "+failure), "resources: [deployments]}]",
				"resources: [deployments]}], matchConditions: [{name: c, expression: '"+expression+"'}]", 1)
			set := Build(nil, sources(t, "f", text), Options{})
			q := web(nil)
			list := make([]any, 1000)
			for i := range list {
				list[i] = int64(i)
			}
			q.OldObject["spec"] = map[string]any{"list": list, "text": strings.Repeat("a", 100_000)}
			d := set.Decide(q)
			costs := says != "no such key"
			if d.Allowed != (failure == "Ignore" && !costs) || len(d.Errors) != 1 || !strings.Contains(d.Errors[0].Err, says) {
				t.Errorf("%s, %s: %+v", failure, expression, d)
			}
			if costs && (!strings.Contains(d.Message, "the object is too large for it") || !strings.Contains(d.Message, "Make the object smaller")) {
				t.Errorf("%s: refused with %s", failure, d.Message)
			}
		}
	}
}

// That discovery has not answered yet is not the user's mistake.
func TestKindThatIsNotKnownYetIsAnErrorOfThePolicy(t *testing.T) {
	for failure, allowed := range map[string]bool{"Ignore": true, "Fail": false} {
		set := Build(nil, sources(t, "f", "{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: o}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, blockOwnerDeletion: RequirePermission, failurePolicy: "+failure+"}}"), Options{})
		q := web(map[string]any{"ownerReferences": []any{map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "u1", "blockOwnerDeletion": true}}})
		q.Operation, q.Object, q.OldObject = Create, q.OldObject, nil
		q.Facts.Kind = func(schema.GroupVersionKind) Kind { return Kind{} }
		q.Answers = map[Access]Answer{everyFinalizer: false}
		d := set.Decide(q)
		if d.Allowed != allowed || len(d.Errors) != 1 || !strings.Contains(d.Errors[0].Err, `the kinds that are served in "example.com/v1" are not known yet`) || strings.Contains(d.Message, "no resource is known") {
			t.Errorf("%s: %+v", failure, d)
		}
	}
}
