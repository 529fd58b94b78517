package differential

import (
	"context"
	"fmt"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// A Side is one control plane, with one collector.
type Side struct {
	Name string

	objects dynamic.Interface
	meta    metadata.Interface
	// idle returns when the collector has nothing queued; nil for one that cannot tell.
	idle func(context.Context) error
	// anchors are objects that stay, by kind: what a canary that stays is owned by.
	anchors map[string]metav1.OwnerReference

	mu    sync.Mutex
	uids  map[*run]map[string]types.UID
	known map[types.UID]identity
}

// identity is whose uid one is.
type identity struct {
	run  *run
	name string
}

// NewSide prepares a plane whose collector may still be starting.
func NewSide(ctx context.Context, name string, cfg *rest.Config, idle func(context.Context) error) (*Side, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandler = rest.NoWarnings{} // worlds do on purpose what it warns of
	s := &Side{
		Name: name, idle: idle, anchors: map[string]metav1.OwnerReference{},
		uids: map[*run]map[string]types.UID{}, known: map[types.UID]identity{},
	}
	var err error
	if s.objects, err = dynamic.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", name, err)
	}
	if s.meta, err = metadata.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", name, err)
	}
	if err := s.namespace(ctx, canaries); err != nil {
		return nil, err
	}
	for _, k := range Kinds {
		made, err := s.make(ctx, k, canaries, "anchor", nil, nil)
		if err != nil {
			return nil, fmt.Errorf("prepare %s: %w", name, err)
		}
		s.anchors[k.Short] = metav1.OwnerReference{
			APIVersion: k.GroupVersion().String(), Kind: k.Kind, Name: "anchor", UID: made,
		}
	}
	return s, nil
}

// enter makes room for a run.
func (s *Side) enter(ctx context.Context, r *run) error {
	s.mu.Lock()
	s.uids[r] = map[string]types.UID{}
	s.mu.Unlock()
	for _, namespace := range []string{"a", "b"} {
		if err := s.namespace(ctx, r.prefix+"-"+namespace); err != nil {
			return err
		}
	}
	return nil
}

// uid is that of an object on this side, which may be gone, and whether it was ever made.
func (s *Side) uid(r *run, name string) (types.UID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid, made := s.uids[r][name]
	if !made {
		uid = r.absentUID(name)
		s.known[uid] = identity{r, name}
	}
	return uid, made
}

func (s *Side) written(r *run, refs []Reference) []metav1.OwnerReference {
	written := []metav1.OwnerReference{}
	for _, ref := range refs {
		uid, _ := s.uid(r, ref.Owner)
		written = append(written, r.written(ref, uid))
	}
	return written
}

// states are all runs as they are in what was listed.
func (s *Side) states(listed []metav1.PartialObjectMetadata) (map[*run]State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := map[*run]State{}
	for r := range s.uids {
		states[r] = State{}
	}
	for _, m := range listed {
		who, ok := s.known[m.UID]
		if !ok || states[who.run] == nil {
			continue
		}
		o := Object{Terminating: m.DeletionTimestamp != nil, Finalizers: m.Finalizers}
		for _, ref := range m.OwnerReferences {
			owner, ok := s.known[ref.UID]
			if !ok {
				return nil, fmt.Errorf("read %s of %s: it refers to a uid of nobody, %s", who.name, who.run.prefix, ref.UID)
			}
			read, err := who.run.read(ref, owner.name)
			if err != nil {
				return nil, err
			}
			o.Owners = append(o.Owners, read)
		}
		states[who.run][who.name] = o.sorted()
	}
	return states, nil
}

// leave deletes what is left of a run: a reference that cannot be resolved is retried for as long
// as it is there.
func (s *Side) leave(ctx context.Context, r *run) error {
	s.mu.Lock()
	uids := maps.Clone(s.uids[r])
	delete(s.uids, r)
	s.mu.Unlock()
	for name := range uids {
		if err := s.erase(ctx, r, name); err != nil {
			return err
		}
	}
	return nil
}

// erase takes an object away, whatever holds it.
func (s *Side) erase(ctx context.Context, r *run, name string) error {
	err := s.change(ctx, r, name, func(m *metav1.PartialObjectMetadata) { m.Finalizers = nil })
	if err == nil {
		err = s.delete(ctx, r, name, metav1.DeletePropagationBackground)
	}
	if err == nil { // an object whose finalizers are its own propagation is not gone with the first
		err = s.change(ctx, r, name, func(m *metav1.PartialObjectMetadata) { m.Finalizers = nil })
	}
	return err
}

func ignore(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return err
}
