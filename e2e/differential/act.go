package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// act does one operation. What the API server refuses, and what is gone, is left as it is: the
// states say so.
func (s *Side) act(ctx context.Context, r *run, o Operation, step int) error {
	if err := s.try(ctx, r, o, step); ignore(err) != nil {
		return fmt.Errorf("%s in %s under %s: %w", o, r.prefix, s.Name, err)
	}
	return nil
}

func (s *Side) try(ctx context.Context, r *run, o Operation, step int) error {
	switch o.Verb {
	case Create:
		return s.create(ctx, r, o)
	case Delete:
		return s.delete(ctx, r, o.Object, o.Policy)
	}
	return s.change(ctx, r, o.Object, func(m *metav1.PartialObjectMetadata) {
		switch o.Verb {
		case Own:
			m.OwnerReferences = s.written(r, o.Owners)
		case Adopt:
			m.OwnerReferences = append(m.OwnerReferences, s.written(r, o.Owners)...)
		case Disown:
			owner, _ := s.uid(r, o.Owner)
			m.OwnerReferences = slices.DeleteFunc(m.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == owner })
		case Block, Unblock:
			owner, _ := s.uid(r, o.Owner)
			for i := range m.OwnerReferences {
				if m.OwnerReferences[i].UID == owner {
					m.OwnerReferences[i].BlockOwnerDeletion = new(o.Verb == Block)
				}
			}
		case Finalize:
			if !slices.Contains(m.Finalizers, o.Finalizer) {
				m.Finalizers = append(m.Finalizers, o.Finalizer)
			}
		case Unfinalize:
			m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool { return f == o.Finalizer })
		case Touch:
			m.Annotations = map[string]string{"touched": fmt.Sprint(step)}
		}
	})
}

func (s *Side) create(ctx context.Context, r *run, o Operation) error {
	var finalizers []string
	if o.Finalizer != "" {
		finalizers = []string{o.Finalizer}
	}
	uid, err := s.make(ctx, KindOf(o.Object), r.namespaces[o.Object], r.name(o.Object), s.written(r, o.Owners), finalizers)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uids[r][o.Object], s.known[uid] = uid, identity{r, o.Object}
	return nil
}

// make creates an object, and returns its uid.
func (s *Side) make(ctx context.Context, k Kind, namespace, name string, owners []metav1.OwnerReference, finalizers []string) (types.UID, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(k.GroupVersionKind)
	o.SetName(name)
	o.SetOwnerReferences(owners)
	o.SetFinalizers(finalizers)
	var in dynamic.ResourceInterface = s.objects.Resource(k.gvr())
	if !k.Cluster {
		in = s.objects.Resource(k.gvr()).Namespace(namespace)
	}
	made, err := in.Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return made.GetUID(), nil
}

func (s *Side) namespace(ctx context.Context, name string) error {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	o.SetName(name)
	_, err := s.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make namespace %s under %s: %w", name, s.Name, err)
	}
	return nil
}

// at is where an object of a run is.
func (s *Side) at(r *run, name string) metadata.ResourceInterface {
	k := KindOf(name)
	if k.Cluster {
		return s.meta.Resource(k.gvr())
	}
	return s.meta.Resource(k.gvr()).Namespace(r.namespaces[name])
}

func (s *Side) delete(ctx context.Context, r *run, name string, policy metav1.DeletionPropagation) error {
	uid, made := s.uid(r, name)
	if !made {
		return nil
	}
	return ignore(s.at(r, name).Delete(ctx, r.name(name), metav1.DeleteOptions{
		PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid},
	}))
}

// change reads an object and writes its metadata. A collector may write it meanwhile: then it is
// read again.
func (s *Side) change(ctx context.Context, r *run, name string, how func(*metav1.PartialObjectMetadata)) error {
	uid, made := s.uid(r, name)
	if !made {
		return nil
	}
	const tries = 10
	var err error
	for range tries {
		var m *metav1.PartialObjectMetadata
		m, err = s.at(r, name).Get(ctx, r.name(name), metav1.GetOptions{})
		if err != nil || m.UID != uid {
			return ignore(err)
		}
		how(m)
		var patch []byte
		patch, err = json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": m.ResourceVersion, "ownerReferences": m.OwnerReferences,
			"finalizers": m.Finalizers, "annotations": m.Annotations,
		}})
		if err != nil {
			return err
		}
		_, err = s.at(r, name).Patch(ctx, r.name(name), types.MergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsConflict(err) {
			return ignore(err)
		}
	}
	return fmt.Errorf("change %s in %s under %s: in %d tries: %w", name, r.prefix, s.Name, tries, err)
}
