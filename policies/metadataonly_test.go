package policies

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

func TestWhatAConditionLooksAt(t *testing.T) {
	for expression, want := range map[string]bool{
		"true":                               true,
		"request.userInfo.username != 'bob'": true,
		"oldObject.metadata.name.startsWith('w')":                                                        true,
		"oldObject.metadata.labels['env'] == 'prod'":                                                     true,
		"has(oldObject.metadata.labels) && 'env' in oldObject.metadata.labels":                           true,
		"has(object.metadata)":                                                                           true,
		"object == null || null != oldObject":                                                            true,
		"oldObject.kind == 'Deployment' && oldObject.apiVersion == 'apps/v1'":                            true,
		"oldObject.metadata.ownerReferences.exists(r, r.kind == 'Job')":                                  true,
		"object.metadata.generation != oldObject.metadata.generation":                                    true,
		"[object.metadata.name, 'a'].all(x, x == 'a')":                                                   true,
		"namespaceObject.spec.finalizers == []":                                                          true,
		"oldObject.spec.replicas > 1":                                                                    false,
		"has(oldObject.spec)":                                                                            false,
		"oldObject.metadata.name == 'w' && oldObject.status.ready":                                       false,
		"oldObject.metadata == {}":                                                                       false,
		"size(oldObject.metadata) > 3":                                                                   false,
		"oldObject.metadata.managedFields.exists(f, f.manager == 'kubectl')":                             false,
		"has(oldObject.metadata.managedFields)":                                                          false,
		"oldObject['metadata']['name'] == 'w'":                                                           false,
		"oldObject.?metadata.?name == optional.of('w')":                                                  false,
		"object == oldObject":                                                                            false,
		"'spec' in oldObject":                                                                            false,
		"oldObject.exists(k, k == 'spec')":                                                               false,
		".oldObject.spec.replicas > 1":                                                                   false,
		"[1].exists(object, object == 1)":                                                                false, // another object, and not worth the scopes
		"['a'].exists(x, oldObject.spec.a == x)":                                                         false,
		"['a'].map(x, oldObject.metadata.labels[x], oldObject.spec[x]) == []":                            false,
		"(oldObject == null ? object : oldObject).metadata.name == 'a'":                                  false,
		"dyn(oldObject).spec.replicas > 1":                                                               false,
		"oldObject.metadata.name == (has(object.data) ? 'a' : 'b')":                                      false,
		"oldObject == null ? false : oldObject.metadata.name == 'web'":                                   true,
		"{'a': oldObject.spec} == {}":                                                                    false,
		"oldObject.metadata.labels.all(k, v, oldObject.data[k] == v)":                                    false,
		"oldObject.metadata.labels.all(k, v, oldObject.metadata.labels[k] == v)":                         true,
		"authorizer.group('').resource('pods').check('delete').allowed() || object.metadata.name == 'a'": true,
	} {
		if got := metadataOnly(expression); got != want {
			t.Errorf("%s: the essence is enough: %t", expression, got)
		}
	}
}

const fullObject = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","generation":3,"labels":{"env":"prod","v":"1"},
	"managedFields":[{"manager":"kubectl"}],"annotations":{"a\"b":"\u00e9"}},"spec":{"n":2,"x":1.5},"data":{"env":"prod"}}`

// What a condition says does not depend on how much of the object was decoded before.
func TestConditionsSeeAllOfAnObject(t *testing.T) {
	var whole map[string]any
	if err := decode([]byte(fullObject), &whole); err != nil {
		t.Fatal(err)
	}
	answered := map[string]int{}
	check := func(t *rapid.T, text string) {
		c, errs := compileConditions([]v1alpha1.Condition{{Name: "c", Expression: text}}, field.NewPath("c"))
		if len(errs) > 0 {
			return
		}
		q, err := FromRequest(&admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: []byte(fullObject)}})
		if err != nil {
			t.Fatal(err)
		}
		if q.OldObject["spec"] != nil {
			t.Fatal("the object was decoded whole before anyone asked")
		}
		want, wantErr := (&evaluation{q: &Question{Operation: Delete, OldObject: whole}}).all(c)
		got, gotErr := (&evaluation{q: &q}).all(c)
		if got != want || (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("%s: %t (%v), of the whole object %t (%v)", text, got, gotErr, want, wantErr)
		}
		if decoded := q.oldObject.all != nil; decoded && !c[0].whole {
			t.Fatalf("%s: decoded all of the object", text)
		}
		switch {
		case want:
			answered["true"]++
		case wantErr != nil:
			answered["error"]++
		default:
			answered["false"]++
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(t, anyExpression(t, 3)) })
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.SampledFrom([]string{
			"oldObject.metadata.generation == 3", "oldObject.metadata.labels.v == '1'", "size(oldObject.metadata) == 5", "oldObject.spec.x == 1.5",
			"oldObject.metadata.managedFields[0].manager == 'kubectl'", "oldObject.metadata.annotations['a\"b'] == 'é'", ".oldObject.data.env == 'prod'",
			"oldObject.metadata.labels.all(k, v, has(oldObject.metadata.labels) && k != v)", "has(oldObject.metadata.finalizers)", "'data' in oldObject",
		}).Draw(t, "expression"))
	})
	if answered["true"] == 0 || answered["false"] == 0 || answered["error"] == 0 {
		t.Errorf("not every outcome was tried: %v", answered)
	}
}
