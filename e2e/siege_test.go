package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/e2e/plane"
)

var sieges = flag.Int("sieges", histories, "how many histories TestNoProtectedObjectGoesUnconfirmed plays in each mode")

// siege is one history: three clients who may edit, and whose deletes nobody refuses, do what comes
// to their minds with two owners and three protected Secrets of theirs. They never delete a Secret,
// and never confirm that one may go.
type siege struct {
	*rand.Rand
	maps, secrets  dynamic.ResourceInterface
	id             int
	owners, guards []*unstructured.Unstructured
	lines          []string // what was done
	mu             sync.Mutex
}

func (s *siege) said(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// refs are owner references, to owners that are there, were there, or never were.
func (s *siege) refs(r *rand.Rand) []metav1.OwnerReference {
	refs := []metav1.OwnerReference{}
	for _, o := range s.owners {
		if r.IntN(3) > 0 {
			block := r.IntN(2) == 0
			refs = append(refs, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: o.GetName(), UID: o.GetUID(), BlockOwnerDeletion: &block})
		}
	}
	if r.IntN(6) == 0 {
		refs = append(refs, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", r.IntN(1000)))})
	}
	return refs
}

func (s *siege) begin(ctx context.Context) error {
	for i := range 5 {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		o.SetName(fmt.Sprintf("siege-%d-%d", s.id, i))
		client, to := s.maps, &s.owners
		if i > 1 {
			o.SetKind("Secret")
			o.SetOwnerReferences(s.refs(s.Rand))
			client, to = s.secrets, &s.guards
		} else if s.IntN(3) == 0 {
			o.SetFinalizers([]string{"example.com/hold"})
		}
		made, err := client.Create(ctx, o, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		*to = append(*to, made)
	}
	return nil
}

// client does some things, one after the other. What is refused, or is not there any more, is no
// concern of it.
func (s *siege) client(ctx context.Context, r *rand.Rand) {
	for range 2 + r.IntN(4) {
		owner, guard := s.owners[r.IntN(2)], s.guards[r.IntN(3)]
		var err error
		switch r.IntN(8) {
		case 0, 1, 2:
			p := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}[r.IntN(3)]
			err = s.maps.Delete(ctx, owner.GetName(), metav1.DeleteOptions{PropagationPolicy: &p})
			s.said("delete %s %s: %v", owner.GetName(), p, err)
		case 3, 4, 5:
			patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": s.refs(r)}})
			_, err = s.secrets.Patch(ctx, guard.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
			s.said("patch %s %s: %v", guard.GetName(), patch, err)
		case 6:
			_, err = s.maps.Patch(ctx, owner.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			s.said("unfinalize %s: %v", owner.GetName(), err)
		case 7:
			err = s.maps.Delete(ctx, owner.GetName(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
			s.said("try to delete %s: %v", owner.GetName(), err)
		}
	}
}

// settled tells what has to be waited for until nothing can happen any more: until the owners are
// gone, and no Secret refers to one. It fails where a Secret is gone.
func (s *siege) settled(ctx context.Context) (waits string, err error) {
	for _, o := range s.owners {
		_, err := s.maps.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err == nil {
			err = s.maps.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
		}
		if !apierrors.IsNotFound(err) {
			waits += fmt.Sprintf("%s is there: %v. ", o.GetName(), err)
		}
	}
	for _, g := range s.guards {
		now, err := s.secrets.Get(ctx, g.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && (now.GetUID() != g.GetUID() || now.GetDeletionTimestamp() != nil):
			return "", fmt.Errorf("%s was deleted, unconfirmed", g.GetName())
		case err != nil:
			return "", err
		case len(now.GetOwnerReferences()) > 0:
			waits += fmt.Sprintf("%s is owned by %v. ", g.GetName(), now.GetOwnerReferences())
		}
	}
	return waits, nil
}

// Whatever clients do to the owners of protected objects, and to their references, no collector
// deletes one that is not confirmed; and none is left with an owner that is not there. Thirty
// clients leave those beside them no pause.
func TestNoProtectedObjectGoesUnconfirmed(t *testing.T) {
	eachModeAlone(t, func(t *testing.T, w *fixture) {
		w.protectSecrets()
		w.besiege(*sieges)
	})
}

// besiege plays this many histories, ten at the same time.
func (w *fixture) besiege(histories int) {
	w.Helper()
	exempt := w.controller()
	seed := time.Now().UnixNano()
	w.Logf("seed %d", seed)
	const atOnce = 10
	numbers := make(chan int)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for n := range numbers {
				s := &siege{Rand: rand.New(rand.NewPCG(uint64(seed), uint64(n))), id: n,
					maps: exempt.Resource(w.kinds["cm"].gvr()).Namespace(w.namespace), secrets: w.dynamic.Resource(w.kinds["sec"].gvr()).Namespace(w.namespace)}
				if err := s.play(w); err != nil {
					w.Errorf("history %d: %v\n%s", n, err, slices.Clone(s.lines))
				}
			}
		})
	}
	for n := range histories {
		numbers <- n
	}
	close(numbers)
	all.Wait()
}

// play plays a history.
func (s *siege) play(w *fixture) error {
	if err := s.begin(w.Context()); err != nil {
		return err
	}
	var clients sync.WaitGroup
	for range 3 {
		r := rand.New(rand.NewPCG(s.Uint64(), s.Uint64()))
		clients.Go(func() { s.client(w.Context(), r) })
	}
	clients.Wait()
	waits := ""
	err := plane.Poll(w.Context(), 3*time.Minute, func(ctx context.Context) (_ bool, err error) {
		waits, err = s.settled(ctx)
		return waits == "", err
	})
	if err != nil {
		return fmt.Errorf("%w %s", err, waits)
	}
	return nil
}
