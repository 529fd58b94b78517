package differential

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
)

const (
	canaries = "canaries"
	// stillRounds is for how many rounds of canaries nothing may change.
	stillRounds = 3
	mostRounds  = 400
	// patience is how long a canary may live: kube-controller-manager takes up to a minute to see a
	// new kind.
	patience = 2 * time.Minute
)

// settle returns what is there when the collector has done all it will. In a round it has to
// collect some canaries of every kind. A watch shows the objects of a kind in order, so whatever
// happened before the round was seen. Some go by the slow ways: of a pair with one uid and two
// names the second comes to kube-controller-manager through the rate limit of its retries only,
// which passes ten a second; and the canary that an anchor owns loses its other owner by a lookup
// that nothing else waits for. What a step sets off, it may set off step by step: so nothing may
// have changed for some rounds.
func (s *Side) settle(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	var before map[types.UID]string
	still := 0
	for range mostRounds {
		if err := s.round(ctx); err != nil {
			return nil, fmt.Errorf("settle %s: %w", s.Name, err)
		}
		listed, err := s.list(ctx)
		if err != nil {
			return nil, fmt.Errorf("settle %s: %w", s.Name, err)
		}
		now := map[types.UID]string{}
		for _, m := range listed {
			now[m.UID] = m.ResourceVersion
		}
		if still++; !maps.Equal(before, now) {
			still = 0
		}
		if still == stillRounds {
			return listed, nil
		}
		before = now
	}
	return nil, fmt.Errorf("settle %s: objects change for ever", s.Name)
}

// list is everything of the kinds of worlds, but the canaries.
func (s *Side) list(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	var all []metav1.PartialObjectMetadata
	for _, k := range Kinds {
		list, err := s.meta.Resource(k.gvr()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", k.Resource, err)
		}
		for _, m := range list.Items {
			s.mu.Lock()
			_, known := s.known[m.UID]
			s.mu.Unlock()
			if known {
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// round makes canaries and returns when all are as the collector leaves them.
func (s *Side) round(ctx context.Context) error {
	var end []func(context.Context) (bool, error)
	for i, k := range Kinds {
		var in metadata.ResourceInterface = s.meta.Resource(k.gvr())
		if !k.Cluster {
			in = s.meta.Resource(k.gvr()).Namespace(canaries)
		}
		absent := s.anchors[k.Short]
		absent.UID = uuid.NewUUID()
		names := []string{"nobody", "no-one"}
		if i > 0 {
			names = names[:1]
		}
		for _, owner := range names {
			name := "canary-" + string(uuid.NewUUID())
			absent.Name = owner
			if _, err := s.make(ctx, k, canaries, name, []metav1.OwnerReference{absent}, nil); err != nil {
				return fmt.Errorf("make a canary: %w", err)
			}
			end = append(end, func(ctx context.Context) (bool, error) {
				_, err := in.Get(ctx, name, metav1.GetOptions{})
				return apierrors.IsNotFound(err), ignore(err)
			})
		}
		name := "canary-" + string(uuid.NewUUID())
		if _, err := s.make(ctx, k, canaries, name, []metav1.OwnerReference{s.anchors[k.Short], absent}, nil); err != nil {
			return fmt.Errorf("make a canary: %w", err)
		}
		end = append(end, func(ctx context.Context) (bool, error) {
			m, err := in.Get(ctx, name, metav1.GetOptions{})
			if err != nil || len(m.OwnerReferences) != 1 {
				return false, err
			}
			return true, in.Delete(ctx, name, metav1.DeleteOptions{})
		})
	}
	for _, ended := range end {
		if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, patience, true, ended); err != nil {
			return fmt.Errorf("wait for a canary: %w", err)
		}
	}
	if s.idle == nil {
		return nil
	}
	return s.idle(ctx)
}
