package webhook

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-dev/weir/policies"
)

// owner reads the object that an OwnerLookup names; nil if there is none.
func (j *judge) owner(ctx context.Context, o policies.OwnerLookup) (map[string]any, error) {
	object, m, err := j.arm.lister.Get(ctx, o.Resource, o.Namespace, o.Ref.Name, false)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err == nil && (m.Name != o.Ref.Name || m.Namespace != o.Namespace):
		return nil, fmt.Errorf("the API server answers with %q in namespace %q", m.Name, m.Namespace)
	}
	return object, err
}

// owners reads the owners that a decision asks about. One that cannot be read stays unknown.
func (j *judge) owners(
	ctx context.Context, lookups []policies.OwnerLookup,
) (map[policies.OwnerRef]policies.Owner, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	read := make([]policies.Owner, len(lookups))
	var group errgroup.Group
	group.SetLimit(lookupsAtOnce)
	for i, l := range lookups {
		group.Go(func() error {
			object, err := j.owner(ctx, l)
			if errors.Is(err, errBusy) {
				return err
			}
			if err != nil {
				j.log.say("could not read the owner that a request names", "owner", l.Ref.String(),
					"namespace", l.Namespace, "err", err.Error())
			}
			read[i] = l.Answer(object, err)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found := map[policies.OwnerRef]policies.Owner{}
	for i, l := range lookups {
		found[l.Ref] = read[i]
	}
	return found, nil
}
