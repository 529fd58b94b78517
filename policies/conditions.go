package policies

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
)

// checkConditions finds conditions of a DeletionPolicy that cannot be meant.
func (c *compiled) checkConditions() {
	propagates := c.deletion.propagation != nil
	for i := range c.conditions {
		at, expression := c.conditions[i].at, c.conditions[i].expression
		switch {
		case neverTrue(expression, admissioncel.ObjectVarName):
			c.mistake(at, "it can never be true, so the policy would be about nothing: object is null at a DELETE, as which conditions are always asked. The object is oldObject")
		case looksInto(expression, admissioncel.ObjectVarName):
			c.warn(at, "object is null at a DELETE, as which conditions are always asked: what looks into it fails. The object is oldObject")
		}
		if propagates && mentions(expression, admissioncel.RequestVarName) {
			c.mistake(at, "a policy with propagation cannot ask about the request: what becomes of an object is decided before anyone asks to delete it. Write a policy of its own for the protection")
		}
	}
}

// asRequest is the variable request, field by field as the API server makes it of an AdmissionRequest.
func (q *Question) asRequest() map[string]any {
	kind, resource := kindMap(q.Kind), resourceMap(q.Resource)
	requestKind, requestResource, requestSubresource := kind, resource, q.RequestSubresource
	if q.RequestKind != q.Kind && !q.RequestKind.Empty() {
		requestKind = kindMap(q.RequestKind)
	}
	if q.RequestResource.Empty() {
		requestSubresource = q.Subresource
	} else if q.RequestResource != q.Resource {
		requestResource = resourceMap(q.RequestResource)
	}
	user := map[string]any{}
	setString(user, "username", q.User.Name)
	setString(user, "uid", q.User.UID)
	if len(q.User.Groups) > 0 {
		user["groups"] = anyList(q.User.Groups)
	}
	if len(q.User.Extra) > 0 {
		extra := map[string]any{}
		for k, v := range q.User.Extra {
			extra[k] = anyList(v)
		}
		user["extra"] = extra
	}
	r := map[string]any{
		"uid": "", "kind": kind, "resource": resource, "requestKind": requestKind, "requestResource": requestResource,
		"operation": string(q.Operation), "userInfo": user, "dryRun": q.DryRun,
		"object": nil, "oldObject": nil, "options": orNull(q.Options),
	}
	setString(r, "subResource", q.Subresource)
	setString(r, "requestSubResource", requestSubresource)
	setString(r, "name", q.Name)
	setString(r, "namespace", q.Namespace)
	return r
}

func kindMap(k schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
}

func resourceMap(r schema.GroupVersionResource) map[string]any {
	return map[string]any{"group": r.Group, "version": r.Version, "resource": r.Resource}
}

func setString(m map[string]any, key, value string) {
	if value != "" {
		m[key] = value
	}
}

func anyList(in []string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}
