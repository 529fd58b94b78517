package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/controller/kinds"
)

// KindState is what is known of a kind that is followed.
type KindState struct {
	Kind     string `json:"kind"`
	Objects  int    `json:"objects"`
	Deleting int    `json:"deleting,omitempty"`
	Problem  string `json:"problem,omitempty"` // why it is not followed now
	Denied   bool   `json:"denied,omitempty"`  // the user may not list or watch it
	Waiting  bool   `json:"waiting,omitempty"` // its first list is not complete
}

// NamespaceState is what is known of the content of a namespace.
type NamespaceState struct {
	Name     string `json:"name"` // empty: cluster-scoped objects
	Objects  int    `json:"objects"`
	Deleting int    `json:"deleting,omitempty"`
	// Terminating reports whether the namespace itself is being deleted.
	Terminating bool `json:"terminating,omitempty"`
}

// State is what is known of a cluster.
type State struct {
	Version    int64            `json:"version"`
	Objects    int              `json:"objects"`
	Kinds      []KindState      `json:"kinds"`
	Namespaces []NamespaceState `json:"namespaces"`
	Unheard    []string         `json:"unheard,omitempty"` // API groups whose discovery failed
	// Lost is why the API server does not answer; empty: it does.
	Lost string `json:"lost,omitempty"`
}

// Health says whether what is known of a cluster is current.
type Health struct {
	Lost string `json:"lost,omitempty"` // why the API server does not answer; empty: it does
	// Waiting is how many kinds have not been listed yet, Denied how many the user may not list.
	// Behind maps kinds whose changes do not arrive to the reasons.
	Waiting int               `json:"waiting,omitempty"`
	Denied  int               `json:"denied,omitempty"`
	Behind  map[string]string `json:"behind,omitempty"`
}

// Health returns the current Health.
func (f *Follower) Health() Health {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := Health{Lost: f.lost, Behind: map[string]string{}}
	for gv, reason := range f.unheard {
		h.Behind["all of "+gv] = reason
	}
	for gr, k := range f.kinds {
		switch {
		case k.denied:
			h.Denied++
		case k.problem != "":
			h.Behind[gr.String()] = k.problem
		case !k.synced:
			h.Waiting++
		}
	}
	if h.Lost == "" && len(h.Behind) > 0 && len(h.Behind) >= len(f.kinds)-h.Denied {
		h.Lost = "no kind can be followed" // this is known sooner than discovery fails
	}
	return h
}

// State counts the objects by kind and by namespace.
func (f *Follower) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := State{Version: f.version, Lost: f.lost, Unheard: slices.Sorted(maps.Keys(f.unheard))}
	in := map[string]*NamespaceState{}
	if k := f.kinds[kinds.Namespaces]; k != nil {
		for _, m := range k.objects[""] {
			in[m.Name] = &NamespaceState{Name: m.Name, Terminating: m.DeletionTimestamp != nil}
		}
	}
	for _, k := range f.kinds {
		one := KindState{Kind: k.kind.GroupResource().String(), Problem: k.problem, Denied: k.denied,
			Waiting: !k.synced && k.problem == ""}
		for namespace, objects := range k.objects {
			ns := in[namespace]
			if ns == nil {
				ns = &NamespaceState{Name: namespace}
				in[namespace] = ns
			}
			deleting := 0
			for _, m := range objects {
				if m.DeletionTimestamp != nil {
					deleting++
				}
			}
			ns.Objects, ns.Deleting = ns.Objects+len(objects), ns.Deleting+deleting
			one.Objects, one.Deleting = one.Objects+len(objects), one.Deleting+deleting
		}
		s.Objects += one.Objects
		s.Kinds = append(s.Kinds, one)
	}
	for _, ns := range in {
		s.Namespaces = append(s.Namespaces, *ns)
	}
	slices.SortFunc(s.Kinds, func(a, b KindState) int { return cmp.Compare(a.Kind, b.Kind) })
	slices.SortFunc(s.Namespaces, func(a, b NamespaceState) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// Search returns the best matches of the objects whose names contain text or whose uid is text, and
// how many match. It keeps no more than most of them, however many match: updates wait for it.
func (f *Follower) Search(text string, most int) (found []insight.Object, total int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for gr, k := range f.kinds {
		kind := gr.String()
		for _, objects := range k.objects {
			for _, m := range objects {
				if !strings.Contains(m.Name, text) && string(m.UID) != text {
					continue
				}
				total++
				found = among(found, insight.Object{Kind: kind, Namespace: m.Namespace, Name: m.Name, UID: m.UID}, most)
			}
		}
	}
	return found, total
}

// among inserts an object into best, which is sorted and keeps the best most objects.
func among(best []insight.Object, o insight.Object, most int) []insight.Object {
	at, _ := slices.BinarySearchFunc(best, o, func(a, b insight.Object) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace))
	})
	if at >= most {
		return best
	}
	if len(best) == most {
		best = best[:most-1]
	}
	return slices.Insert(best, at, o)
}

// Find returns the resource of a kind, and the uid of the object with that name. An error says what
// was not found.
func (f *Follower) Find(kind, namespace, name string) (schema.GroupVersionResource, types.UID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.kinds[schema.ParseGroupResource(kind)]
	if k == nil {
		return schema.GroupVersionResource{}, "", fmt.Errorf("%w: the cluster serves no kind %q that can be listed "+
			"and deleted", ErrNotServed, kind)
	}
	for uid, m := range k.objects[namespace] {
		if m.Name == name {
			return k.kind.GroupResource().WithVersion(k.kind.Version), uid, nil
		}
	}
	switch {
	case k.problem != "":
		return schema.GroupVersionResource{}, "", fmt.Errorf("whether it is there is not known: %s cannot be listed: %s",
			kind, k.problem)
	case !k.synced:
		return schema.GroupVersionResource{}, "", fmt.Errorf("whether it is there is not known yet: %s are being listed",
			kind)
	}
	return schema.GroupVersionResource{}, "", fmt.Errorf("%w: there is no %s %q", ErrGone, kind, name)
}

// The errors of Find.
var (
	ErrGone      = errors.New("not found")
	ErrNotServed = errors.New("not served")
)
