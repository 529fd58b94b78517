package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// kinds are what cascades are made of: their watches keep no order among each other.
var kinds = map[string]schema.GroupVersionResource{
	"ConfigMap": {Version: "v1", Resource: "configmaps"},
	"Secret":    {Version: "v1", Resource: "secrets"},
}

// object is one of a cascade, and what must become of it.
type object struct {
	kind, namespace, name string
	owners                []*object
	goes                  bool
	kept                  []*object // if it stays: the owners that it then has
	uid                   types.UID
}

// A cascade is some owners, each with the propagation that it is deleted with, and all objects
// around them in the order in which they can be made.
type cascade struct {
	bosses  map[*object]metav1.DeletionPropagation
	objects []*object
}

// newCascade has about n objects, in namespaces that begin with the prefix.
func newCascade(prefix string, n int) *cascade {
	c := &cascade{bosses: map[*object]metav1.DeletionPropagation{}}
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		c.flat(prefix+"-flat-"+strings.ToLower(string(policy)), policy, n/6)
		c.tree(prefix+"-tree-"+strings.ToLower(string(policy)), policy, n/6)
	}
	return c
}

// flat is one owner of most of n objects. Some have another owner as well, some have none.
func (c *cascade) flat(namespace string, policy metav1.DeletionPropagation, n int) {
	orphan := policy == metav1.DeletePropagationOrphan
	boss, staying := c.boss(namespace, policy), c.stays("ConfigMap", namespace, "staying")
	for i := range n {
		switch {
		case i%20 == 0:
			c.stays("ConfigMap", namespace, fmt.Sprintf("unowned-%d", i))
		case i%7 == 0:
			c.add(&object{kind: "Secret", namespace: namespace, name: fmt.Sprintf("shared-%d", i),
				owners: []*object{boss, staying}, kept: []*object{staying}})
		default:
			c.add(&object{kind: "ConfigMap", namespace: namespace, name: fmt.Sprintf("leaf-%d", i),
				owners: []*object{boss}, goes: !orphan})
		}
	}
}

// tree is one owner of owners, with fifty dependents each. When it lets them go, theirs stay
// theirs.
func (c *cascade) tree(namespace string, policy metav1.DeletionPropagation, n int) {
	orphan := policy == metav1.DeletePropagationOrphan
	boss, staying := c.boss(namespace, policy), c.stays("ConfigMap", namespace, "staying")
	var middle *object
	for i := range n {
		switch {
		case i%51 == 0:
			middle = c.add(&object{kind: "Secret", namespace: namespace, name: fmt.Sprintf("middle-%d", i),
				owners: []*object{boss}, goes: !orphan})
		case i%7 == 0:
			shared := c.add(&object{kind: "ConfigMap", namespace: namespace, name: fmt.Sprintf("shared-%d", i),
				owners: []*object{middle, staying}, kept: []*object{staying}})
			if orphan {
				shared.kept = shared.owners
			}
		default:
			leaf := c.add(&object{kind: "ConfigMap", namespace: namespace, name: fmt.Sprintf("leaf-%d", i),
				owners: []*object{middle}, goes: !orphan})
			if orphan {
				leaf.kept = leaf.owners
			}
		}
	}
}

func (c *cascade) add(o *object) *object {
	c.objects = append(c.objects, o)
	return o
}

func (c *cascade) boss(namespace string, policy metav1.DeletionPropagation) *object {
	boss := c.add(&object{kind: "ConfigMap", namespace: namespace, name: "boss", goes: true})
	c.bosses[boss] = policy
	return boss
}

func (c *cascade) stays(kind, namespace, name string) *object {
	return c.add(&object{kind: kind, namespace: namespace, name: name})
}

// clients is how many requests the driver keeps under way.
const clients = 64

// make makes all objects, owners first.
func (c *cascade) make(ctx context.Context, client dynamic.Interface) error {
	level := map[*object]int{}
	levels := make([][]*object, 3)
	for _, o := range c.objects {
		for _, owner := range o.owners {
			level[o] = max(level[o], level[owner]+1)
		}
		levels[level[o]] = append(levels[level[o]], o)
	}
	var namespaces []string
	for _, o := range c.objects {
		if slices.Contains(namespaces, o.namespace) {
			continue
		}
		namespaces = append(namespaces, o.namespace)
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		ns.SetName(o.namespace)
		in := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
		if _, err := in.Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("make namespace %s: %w", o.namespace, err)
		}
	}
	for _, objects := range levels {
		var group errgroup.Group
		group.SetLimit(clients)
		for _, o := range objects {
			group.Go(func() error { return o.make(ctx, client) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func (o *object) make(ctx context.Context, client dynamic.Interface) error {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": o.kind}}
	u.SetName(o.name)
	var refs []metav1.OwnerReference
	for _, owner := range o.owners {
		refs = append(refs, metav1.OwnerReference{
			APIVersion: "v1", Kind: owner.kind, Name: owner.name, UID: owner.uid, BlockOwnerDeletion: new(true),
		})
	}
	u.SetOwnerReferences(refs)
	made, err := client.Resource(kinds[o.kind]).Namespace(o.namespace).Create(ctx, u, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make %s: %w", o, err)
	}
	o.uid = made.GetUID()
	return nil
}

// delete sets everything off.
func (c *cascade) delete(ctx context.Context, client dynamic.Interface) error {
	for boss, policy := range c.bosses {
		err := client.Resource(kinds[boss.kind]).Namespace(boss.namespace).Delete(ctx, boss.name, metav1.DeleteOptions{
			PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &boss.uid},
		})
		if err != nil {
			return fmt.Errorf("delete %s: %w", boss, err)
		}
	}
	return nil
}

func (o *object) String() string { return o.kind + " " + o.namespace + "/" + o.name }
