package webhook

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/policies"
)

// Answers about permissions are remembered briefly. Controllers use a grant many times, and a new
// grant should be seen at once.
const (
	rememberGranted = 10 * time.Second
	rememberRefused = 2 * time.Second
)

// access asks the API server what users may do.
type access struct {
	authorizer authorizer.Authorizer
}

func newAccess(config *rest.Config) (*access, error) {
	client, err := typedauthorizationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for access reviews: %w", err)
	}
	a, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client, AllowCacheTTL: rememberGranted, DenyCacheTTL: rememberRefused,
		WebhookRetryBackoff: &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 3},
	}.New()
	if err != nil {
		return nil, fmt.Errorf("set up access reviews: %w", err)
	}
	return &access{a}, nil
}

// ask answers all needs. One that cannot be answered is an error, and not a no, which would be
// wrong about the user.
func (a *access) ask(
	ctx context.Context, u policies.User, needs []policies.Access,
) (map[policies.Access]policies.Answer, error) {
	who := &user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
	verdicts := make([]policies.Answer, len(needs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i, n := range needs {
		group.Go(func() error {
			decision, reason, err := a.authorizer.Authorize(ctx, authorizer.AttributesRecord{
				User: who, Verb: n.Verb, Namespace: n.Namespace, APIGroup: n.Group, APIVersion: n.Version,
				Resource: n.Resource, Subresource: n.Subresource, Name: n.Name, ResourceRequest: true,
			})
			if err != nil {
				return fmt.Errorf("ask what user %q may do: %w (%s)", u.Name, err, reason)
			}
			verdicts[i] = decision == authorizer.DecisionAllow
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := make(map[policies.Access]policies.Answer, len(needs))
	for i, n := range needs {
		out[n] = verdicts[i]
	}
	return out, nil
}
