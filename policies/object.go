package policies

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// object reads a decoded JSON object. A value of the wrong type reads as absent: the API server
// validates objects, and this package must survive those that it would not accept.
type object map[string]any

func (o object) at(path ...string) any {
	var v any = map[string]any(o)
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

func (o object) str(path ...string) string {
	s, _ := o.at(path...).(string)
	return s
}

func (o object) name() string      { return o.str("metadata", "name") }
func (o object) namespace() string { return o.str("metadata", "namespace") }
func (o object) uid() types.UID    { return types.UID(o.str("metadata", "uid")) }
func (o object) terminating() bool { return o.at("metadata", "deletionTimestamp") != nil }

// deletedBefore reports whether the object's deletion began before t.
func (o object) deletedBefore(t time.Time) bool {
	deleted, err := time.Parse(time.RFC3339, o.str("metadata", "deletionTimestamp"))
	return err == nil && deleted.Before(t)
}

func (o object) annotation(key string) string { return o.str("metadata", "annotations", key) }

func (o object) finalizers() []string {
	list, _ := o.at("metadata", "finalizers").([]any)
	out := make([]string, 0, len(list))
	for _, f := range list {
		s, _ := f.(string)
		out = append(out, s)
	}
	return out
}

func (o object) hasFinalizer() bool { return slices.Contains(o.finalizers(), v1beta1.Finalizer) }

// labelSet is a labels.Set without a copy: selectors only look up keys.
type labelSet map[string]any

func (o object) labels() labelSet {
	m, _ := o.at("metadata", "labels").(map[string]any)
	return m
}

// Has implements labels.Labels.
func (l labelSet) Has(key string) bool { _, ok := l[key]; return ok }

// Get implements labels.Labels.
func (l labelSet) Get(key string) string { s, _ := l[key].(string); return s }

// Lookup implements labels.Labels.
func (l labelSet) Lookup(key string) (string, bool) { s, ok := l[key].(string); return s, ok }

// ownerRefs returns the owner references, in order.
func (o object) ownerRefs() []OwnerRef {
	list, _ := o.at("metadata", "ownerReferences").([]any)
	out := make([]OwnerRef, 0, len(list))
	for _, item := range list {
		m, _ := item.(map[string]any)
		r := object(m)
		controller, _ := r.at("controller").(bool)
		block, _ := r.at("blockOwnerDeletion").(bool)
		out = append(out, OwnerRef{
			APIVersion: r.str("apiVersion"), Kind: r.str("kind"), Name: r.str("name"), UID: types.UID(r.str("uid")),
			Controller: controller, Block: block,
		})
	}
	return out
}
