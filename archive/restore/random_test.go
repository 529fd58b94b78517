package restore

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var someKinds = []Kind{
	{GroupResource: namespaces, Kind: "Namespace", Versions: []string{"v1"}},
	{GroupResource: schema.GroupResource{Resource: "nodes"}, Kind: "Node", Versions: []string{"v1"}},
	{GroupResource: schema.GroupResource{Resource: "configmaps"}, Kind: "ConfigMap", Versions: []string{"v1"},
		Namespaced: true},
	{GroupResource: schema.GroupResource{Group: "apps", Resource: "deployments"}, Kind: "Deployment",
		Versions: []string{"v1"}, Namespaced: true},
	{GroupResource: schema.GroupResource{Group: "apps", Resource: "replicasets"}, Kind: "ReplicaSet",
		Versions: []string{"v1"}, Namespaced: true},
	{GroupResource: pods, Kind: "Pod", Versions: []string{"v1"}, Namespaced: true},
	{GroupResource: custom("widgets"), Kind: "Widget", Versions: []string{"v1"}, Namespaced: true},
	{GroupResource: custom("gears"), Kind: "Gear", Versions: []string{"v1"}},
}

func custom(resource string) schema.GroupResource {
	return schema.GroupResource{Group: "example.com", Resource: resource}
}

// a cluster is a World that steps are played on.
type cluster struct {
	World
	next   int
	levels map[Ref]int // of steps that were done
}

// randomWorld has objects that own each other in any way: what was deleted, what survived, what has
// been made again by others, and what is being deleted.
func randomWorld(t *rapid.T) *cluster {
	c := &cluster{levels: map[Ref]int{}, World: World{Tree: "t", Live: map[Ref]*unstructured.Unstructured{},
		Unread: map[Ref]string{}}}
	if rapid.Bool().Draw(t, "widgets are served") {
		c.Kinds = slices.Clone(someKinds)
	} else {
		c.Kinds = someKinds[:len(someKinds)-2]
		c.Records = append(c.Records, definitionOf("widgets", "Widget", "Namespaced"),
			definitionOf("gears", "Gear", "Cluster"))
	}
	c.Kinds = append(c.Kinds, Kind{GroupResource: definitions, Kind: "CustomResourceDefinition", Versions: []string{"v1"}})
	var all []*unstructured.Unstructured
	for n := range rapid.IntRange(3, 12).Draw(t, "objects") {
		k := rapid.SampledFrom(someKinds[1:]).Draw(t, "kind")
		if n < 2 {
			k = someKinds[0]
		}
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: k.Group, Version: "v1", Kind: k.Kind})
		o.SetName(fmt.Sprintf("o%d", n))
		if k.Kind == "Namespace" {
			o.SetName([]string{"x", "y"}[n])
		}
		if k.Namespaced {
			o.SetNamespace(rapid.SampledFrom([]string{"x", "x", "y"}).Draw(t, "namespace"))
		}
		o.SetUID(types.UID(fmt.Sprintf("old-%d", n)))
		all = append(all, o)
	}
	for _, o := range all {
		var owners []metav1.OwnerReference
		for range rapid.IntRange(0, 3).Draw(t, "owners") {
			of := rapid.SampledFrom(all).Draw(t, "owner")
			r := metav1.OwnerReference{APIVersion: of.GetAPIVersion(), Kind: of.GetKind(), Name: of.GetName(), UID: of.GetUID()}
			if rapid.IntRange(0, 9).Draw(t, "never") == 0 {
				r.UID = "never"
			}
			if len(owners) == 0 && rapid.Bool().Draw(t, "controls") {
				r.Controller = new(true)
			}
			owners = append(owners, r)
		}
		o.SetOwnerReferences(owners)
		resource := c.resourceOf(o)
		ref := RefOf(Record{resource, o})
		switch rapid.IntRange(0, 9).Draw(t, "what became of it") {
		case 0:
			c.Live[ref] = o.DeepCopy() // and is recorded
		case 1:
			c.Live[ref] = o.DeepCopy()
			continue
		case 2:
			ending := o.DeepCopy()
			ending.SetDeletionTimestamp(new(metav1.Unix(1, 0)))
			c.Live[ref] = ending
		case 3:
			other := o.DeepCopy()
			other.SetUID(o.GetUID() + "-anew")
			other.SetOwnerReferences(nil)
			_ = unstructured.SetNestedField(other.Object, "other", "data", "v")
			c.Live[ref] = other
		case 4:
			c.Unread[ref] = "forbidden"
		case 5:
			continue // it is not recorded
		}
		c.Records = append(c.Records, Record{resource, o})
	}
	return c
}

func definitionOf(plural, kind, scope string) Record {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": "example.com", "scope": scope, "names": map[string]any{"plural": plural, "kind": kind},
		"versions": []any{map[string]any{"name": "v1", "served": true}}}}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: definitions.Group, Version: "v1",
		Kind: "CustomResourceDefinition"})
	o.SetName(plural + ".example.com")
	o.SetUID(types.UID("old-" + plural))
	return Record{definitions.WithVersion("v1"), o}
}

func (c *cluster) resourceOf(o *unstructured.Unstructured) schema.GroupVersionResource {
	n := slices.IndexFunc(someKinds, func(k Kind) bool { return k.Kind == o.GetKind() })
	return someKinds[n].WithVersion("v1")
}

// do plays a step, and fails where an API server or a collector would not put up with it.
func (c *cluster) do(t *rapid.T, s *Step) {
	living := map[types.UID]bool{}
	for _, o := range c.Live {
		if o.GetDeletionTimestamp() == nil {
			living[o.GetUID()] = true
		}
	}
	var references []metav1.OwnerReference
	for _, l := range s.Links {
		owner := c.Live[l.Owner]
		if owner == nil {
			t.Fatalf("%s refers to %s, which is not there yet", s.Ref, l.Owner)
		}
		if level, ok := c.levels[l.Owner]; ok && level >= s.Level {
			t.Fatalf("%s is made at level %d, its owner %s at %d", s.Ref, s.Level, l.Owner, level)
		}
		l.Reference.UID = owner.GetUID()
		references = append(references, l.Reference)
	}
	references = append(references, s.References...)
	o := c.Live[s.Ref]
	switch s.Outcome {
	case Create, Replace:
		references = append(references, s.Object.GetOwnerReferences()...)
		if s.Outcome == Create {
			if o != nil {
				t.Fatalf("%s is there", s.Ref)
			}
			c.next++
			o = s.Object.DeepCopy()
			o.SetUID(types.UID(fmt.Sprintf("new-%d", c.next)))
		} else {
			o = s.Object.DeepCopy()
		}
		ns := Ref{Kind: namespaces, Name: s.Ref.Namespace}
		if s.Ref.Namespace != "" && c.Live[ns] == nil && c.Unread[ns] == "" {
			t.Fatalf("%s is made before its namespace", s.Ref)
		}
		if s.Definition != (Ref{}) && c.Live[s.Definition] == nil {
			t.Fatalf("%s is made before its definition", s.Ref)
		}
	case Patch:
		references = append(references, o.GetOwnerReferences()...)
	}
	for _, r := range references {
		if !living[r.UID] && (s.Outcome != Replace || !refers(s.Live, r.UID)) {
			t.Fatalf("%s refers to uid %s, which nothing living has", s.Ref, r.UID)
		}
	}
	o.SetOwnerReferences(references)
	c.Live[s.Ref] = o
	if s.Outcome != Patch { // which changes nothing for those that refer to it
		c.levels[s.Ref] = s.Level
	}
}

func (c *cluster) clone() *cluster {
	d := *c
	d.levels = map[Ref]int{}
	d.Live = map[Ref]*unstructured.Unstructured{}
	for ref, o := range c.Live {
		d.Live[ref] = o.DeepCopy()
	}
	return &d
}

// named is what there is, with names in the place of uids.
func (c *cluster) named() map[string][]string {
	byUID, out := map[types.UID]Ref{}, map[string][]string{}
	for ref, o := range c.Live {
		byUID[o.GetUID()] = ref
	}
	for ref, o := range c.Live {
		owners := []string{}
		for _, r := range o.GetOwnerReferences() {
			owners = append(owners, byUID[r.UID].String())
		}
		slices.Sort(owners)
		out[ref.String()] = owners
	}
	return out
}

// TestRestoresThatAreStoppedGoOn: in random worlds no step refers to a uid that nothing living has,
// owners come before their dependents, a plan that was carried out in full leaves nothing to do,
// and one that was stopped anywhere is followed by one that does the rest.
func TestRestoresThatAreStoppedGoOn(t *testing.T) {
	acting := 0
	rapid.Check(t, func(t *rapid.T) {
		c := randomWorld(t)
		o := Options{Replace: rapid.Bool().Draw(t, "replace")}
		steps := Make(c.World, o).Acting()
		acting += len(steps)
		whole := c.clone()
		for _, s := range steps {
			whole.do(t, s)
		}
		for _, s := range Make(whole.World, o).Acting() {
			t.Errorf("after all was done: %s", line(s))
		}
		stopped := rapid.IntRange(0, len(steps)).Draw(t, "stopped after")
		left := map[string]int{}
		for n, s := range steps {
			if n < stopped {
				c.do(t, s)
			} else {
				left[string(s.Outcome)+" "+s.Ref.String()]++
			}
		}
		c.levels = map[Ref]int{} // of a new plan
		again := Make(c.World, o).Acting()
		for _, s := range again {
			left[string(s.Outcome)+" "+s.Ref.String()]--
			c.do(t, s)
		}
		maps.DeleteFunc(left, func(_ string, n int) bool { return n == 0 })
		if diff := cmp.Diff(map[string]int{}, left); diff != "" {
			t.Errorf("stopped after %d of %d steps; the rest (-done twice +not done):\n%s", stopped, len(steps), diff)
		}
		if diff := cmp.Diff(whole.named(), c.named()); diff != "" {
			t.Errorf("stopped after %d of %d steps (-whole +stopped):\n%s", stopped, len(steps), diff)
		}
	})
	t.Logf("%d steps", acting)
}
