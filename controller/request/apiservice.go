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

// apiService is the part of an APIService that says who serves a version of a group.
type apiService struct {
	Spec struct {
		Service *struct{ Name string } // nil: the API server itself
	}
	Status struct {
		Conditions []struct{ Type, Status string }
	}
}

// down reports whether API servers pass no requests on to an API. A 503 does not prove that: it may
// come from a load balancer in front of several API servers.
func (s *apiService) down() bool {
	return s.Spec.Service != nil && slices.ContainsFunc(s.Status.Conditions, func(c struct{ Type, Status string }) bool {
		return c.Type == "Available" && c.Status == "False"
	})
}

// Down reports whether no object of a kind can be created, because none of the versions in which it
// is served is available. In doubt it returns false.
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
