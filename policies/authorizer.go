package policies

import (
	"context"
	"errors"
	"slices"

	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"
)

// answers implements authorizer for conditions with Question.Answers. Where there is no answer yet,
// the permission is noted, to be asked of the API server; until then nothing is decided.
type answers struct{ q *Question }

// Authorizer implements cel.Variables.
func (v variables) Authorizer() ref.Val {
	return library.NewAuthorizerVal(v.q.User.info(), answers(v))
}

// ResourceAuthorizer implements cel.Variables.
func (v variables) ResourceAuthorizer() ref.Val {
	return library.NewResourceAuthorizerVal(v.q.User.info(), answers(v), requested(v))
}

func (u User) info() user.Info {
	return &user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}

// mostNeeds bounds the permissions that are noted for one question. Others are not looked up.
const mostNeeds = 128

// Authorize implements authorizer.Authorizer.
func (p answers) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	access := Access{Verb: a.GetVerb(), Group: a.GetAPIGroup(), Resource: a.GetResource(), Subresource: a.GetSubresource(),
		Namespace: a.GetNamespace(), Name: a.GetName()}
	if !a.IsResourceRequest() {
		access = Access{Verb: a.GetVerb(), Path: a.GetPath()}
	}
	answer, known := p.q.Answers[access]
	switch {
	case bool(answer):
		return authorizer.DecisionAllow, "", nil
	case known:
		return authorizer.DecisionNoOpinion, "", nil
	}
	if needs := p.q.needs; needs != nil && len(*needs) < mostNeeds && !slices.Contains(*needs, access) {
		*needs = append(*needs, access)
	}
	return authorizer.DecisionNoOpinion, "", errors.New("it is not known yet")
}

// requested describes the object of a request as the API server does when it authorizes.
type requested struct{ q *Question }

func (r requested) GetName() string                          { return r.q.Name }
func (r requested) GetNamespace() string                     { return r.q.Namespace }
func (r requested) GetResource() schema.GroupVersionResource { return r.q.Resource }
func (r requested) GetSubresource() string                   { return r.q.Subresource }
