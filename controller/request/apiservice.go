package request

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

// apiService is what matters of an APIService: who serves one version of a group.
type apiService struct {
	Spec struct {
		Service *struct{ Name string } // nil: the API server itself
	}
	Status struct {
		Conditions []struct{ Type, Status string }
	}
}

// down tells whether the API servers pass no requests on to an API. Then a 503 is the aggregator's.
// Any other is of whoever sent it, a load balancer perhaps in front of one of several API servers,
// and proves nothing.
func (s *apiService) down() bool {
	return s.Spec.Service != nil && slices.ContainsFunc(s.Status.Conditions, func(c struct{ Type, Status string }) bool {
		return c.Type == "Available" && c.Status == "False"
	})
}

// Down tells whether nothing can be made of a kind, because none of the versions in which it is
// served is available. In doubt it is not.
func (r *Client) Down(ctx context.Context, kind graph.Resource) (bool, error) {
	for _, version := range kind.Versions {
		s, err := r.apiService(ctx, schema.GroupVersion{Group: kind.Group, Version: version})
		if err != nil || !s.down() {
			return false, err
		}
	}
	return kind.Group != "" && len(kind.Versions) > 0, nil
}

func (r *Client) apiService(ctx context.Context, gv schema.GroupVersion) (*apiService, error) {
	name := gv.Version + "." + gv.Group
	v1 := schema.GroupVersion{Group: kinds.APIServices.Group, Version: "v1"}
	body, err := r.raw(ctx, v1, graph.Ref{Kind: kinds.APIServices, Name: name})
	if err != nil {
		return nil, fmt.Errorf("read APIService %s: %w", name, err)
	}
	s := &apiService{}
	if err := json.Unmarshal(body, s); err != nil {
		return nil, fmt.Errorf("decode APIService %s: %w", name, err)
	}
	return s, nil
}
