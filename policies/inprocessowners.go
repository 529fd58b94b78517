package policies

import (
	"strings"

	"github.com/weir-dev/weir/policies/v1beta1"
)

func (p *inProcess) compileOwners() {
	o := p.c.owners
	p.let("what", strings.ReplaceAll(celWhat, "NAME", "(has(object.metadata.name) ? object.metadata.name : '')"))
	p.whom(false)
	p.match("not-terminating", notTerminating)
	p.match("references-change", "oldObject != null || "+has("object", "ownerReferences"))
	p.match("references-differ", changed("ownerReferences"))
	if o.Changes == v1beta1.ChangesRequirePermission {
		p.updates = ownerSubresources
		p.refuse("", "'the owner references of ' + variables.what + ' may be changed only by a user who may delete it: "+
			"user \"' + "+
			"request.userInfo.username + '\" may not delete ' + request.resource.resource + ' in API group \"' + "+
			"request.resource.group + '\"' + (has(request.namespace) && request.namespace != '' ? "+
			"' in namespace \"' + request.namespace + '\"' : '')", "",
			"request.operation != 'UPDATE'",
			"authorizer.group(request.resource.group).resource(request.resource.resource)"+
				".namespace(has(request.namespace) ? request.namespace : '').name(object.metadata.name).check('delete').allowed()")
	}
	switch o.BlockOwnerDeletion {
	case v1beta1.BlockDeny:
		p.updates, p.creates = ownerSubresources, true
		p.refuse("mayBlock", "variables.what + ' may not block the deletion of its owner'",
			"'Leave out blockOwnerDeletion, or set it to false'",
			"!"+has("object", "ownerReferences"),
			"object.metadata.ownerReferences.all(r, !(has(r.blockOwnerDeletion) && r.blockOwnerDeletion) || oldObject != "+
				"null && "+
				has("oldObject", "ownerReferences")+" && oldObject.metadata.ownerReferences.exists(o, o.uid == r.uid && "+
				"has(o.blockOwnerDeletion) && o.blockOwnerDeletion))")
	case v1beta1.BlockRequirePermission:
		p.leaveOut("spec.blockOwnerDeletion", "the API server cannot tell of which resource an owner is")
	case v1beta1.BlockClear:
		p.leaveOut("spec.blockOwnerDeletion", "a ValidatingAdmissionPolicy changes nothing")
	}
	if o.Rules != nil {
		p.leaveOut("spec.rules", "the API server does not look at owners")
	}
}
