package cel

import "testing"

func TestWhatAConditionLooksAt(t *testing.T) {
	for expression, want := range map[string]bool{
		"true":                               true,
		"request.userInfo.username != 'bob'": true,
		"oldObject.metadata.name.startsWith('w')":                                          true,
		"oldObject.metadata.labels['env'] == 'prod'":                                       true,
		"has(oldObject.metadata.labels) && 'env' in oldObject.metadata.labels":             true,
		"has(object.metadata)":                                                             true,
		"object == null || null != oldObject":                                              true,
		"oldObject.kind == 'Deployment' && oldObject.apiVersion == 'apps/v1'":              true,
		"oldObject.metadata.ownerReferences.exists(r, r.kind == 'Job')":                    true,
		"object.metadata.generation != oldObject.metadata.generation":                      true,
		"[object.metadata.name, 'a'].all(x, x == 'a')":                                     true,
		"namespaceObject.spec.finalizers == []":                                            true,
		"oldObject.spec.replicas > 1":                                                      false,
		"has(oldObject.spec)":                                                              false,
		"oldObject.metadata.name == 'w' && oldObject.status.ready":                         false,
		"oldObject.metadata == {}":                                                         false,
		"size(oldObject.metadata) > 3":                                                     false,
		"oldObject.metadata.managedFields.exists(f, f.manager == 'kubectl')":               false,
		"has(oldObject.metadata.managedFields)":                                            false,
		"oldObject['metadata']['name'] == 'w'":                                             false,
		"oldObject.?metadata.?name == optional.of('w')":                                    true,
		"oldObject.metadata.?annotations[?'k'].orValue('') == 'keep'":                      true,
		"oldObject.?metadata.?labels.?env.orValue('') == oldObject.?spec.?env.orValue('')": false,
		"oldObject.?metadata.hasValue()":                                                   false,
		"oldObject.metadata.?managedFields.hasValue()":                                     false,
		"oldObject.?data.hasValue()":                                                       false,
		"object == oldObject":                                                              false,
		"'spec' in oldObject":                                                              false,
		"oldObject.exists(k, k == 'spec')":                                                 false,
		".oldObject.spec.replicas > 1":                                                     false,
		// another object, and not worth the scopes
		"[1].exists(object, object == 1)":                                                                false,
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
			t.Errorf("%s: metadata only: %t", expression, got)
		}
	}
}
