// Package undo reads what the plan of a restore rests on, and does what it says, with the rights of
// whoever asks.
//
// The steps of a level are done by goroutines, which are joined before the next level begins. There
// are no locks: each writes to its own place.
package undo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/pager"

	"github.com/weir-dev/weir/archive/restore"
	"github.com/weir-dev/weir/controller/kinds"
)

// fewNames are read one by one; more of a kind and namespace are listed.
const fewNames = 8

// Read reads what a plan for some records rests on.
func Read(ctx context.Context, client dynamic.Interface, disco discovery.DiscoveryInterface, tree string,
	records []restore.Record) (restore.World, error) {
	w := restore.World{Tree: tree, Records: records,
		Live: map[restore.Ref]*unstructured.Unstructured{}, Unread: map[restore.Ref]string{}}
	var err error
	if w.Kinds, err = served(disco); err != nil {
		return w, err
	}
	versions := map[schema.GroupResource]string{}
	for _, k := range w.Kinds {
		versions[k.GroupResource] = k.Versions[0]
	}
	for _, r := range records { // as they are compared
		n := slices.IndexFunc(w.Kinds, func(k restore.Kind) bool { return k.GroupResource == r.Resource.GroupResource() })
		if n >= 0 && slices.Contains(w.Kinds[n].Versions, r.Resource.Version) {
			versions[r.Resource.GroupResource()] = r.Resource.Version
		}
	}
	type place struct {
		kind      schema.GroupResource
		namespace string
	}
	names := map[place][]restore.Ref{}
	for _, ref := range restore.Names(records, w.Kinds) {
		names[place{ref.Kind, ref.Namespace}] = append(names[place{ref.Kind, ref.Namespace}], ref)
	}
	for p, refs := range names {
		if versions[p.kind] == "" {
			continue // it is not served yet: nothing is there
		}
		of := client.Resource(p.kind.WithVersion(versions[p.kind])).Namespace(p.namespace)
		if len(refs) > fewNames && list(ctx, of, refs, w.Live) == nil {
			continue
		}
		for _, ref := range refs {
			o, err := of.Get(ctx, ref.Name, metav1.GetOptions{})
			switch {
			case err == nil:
				w.Live[ref] = o
			case !apierrors.IsNotFound(err):
				w.Unread[ref] = err.Error()
			}
		}
	}
	return w, ctx.Err()
}

// list reads objects where all of a kind and namespace may be listed.
func list(ctx context.Context, of dynamic.ResourceInterface, refs []restore.Ref,
	to map[restore.Ref]*unstructured.Unstructured) error {
	wanted := map[string]restore.Ref{}
	for _, ref := range refs {
		wanted[ref.Name] = ref
	}
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return of.List(ctx, o) })
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if u, ok := o.(*unstructured.Unstructured); ok {
			if ref, ok := wanted[u.GetName()]; ok {
				to[ref] = u
			}
		}
		return nil
	})
}

// served are the kinds of the cluster. What does not answer is not served: it is told of each
// object that cannot be made for that.
func served(disco discovery.DiscoveryInterface) (list []restore.Kind, err error) {
	all, _, err := kinds.Discover(disco, nil, nil)
	if partly := new(discovery.ErrGroupDiscoveryFailed); err != nil && !errors.As(err, &partly) {
		return nil, err
	}
	_, lists, err := disco.ServerGroupsAndResources()
	if err != nil && lists == nil {
		return nil, fmt.Errorf("discover the kinds that the cluster serves: %w", err)
	}
	status := map[schema.GroupResource]bool{}
	for _, l := range lists {
		gv, _ := schema.ParseGroupVersion(l.GroupVersion)
		for _, r := range l.APIResources {
			if name, ok := strings.CutSuffix(r.Name, "/status"); ok {
				status[gv.WithResource(name).GroupResource()] = true
			}
		}
	}
	for _, k := range all {
		others := slices.DeleteFunc(slices.Clone(k.Versions), func(v string) bool { return v == k.Version })
		list = append(list, restore.Kind{GroupResource: k.GroupResource(), Kind: k.Kind,
			Versions: append([]string{k.Version}, others...), Namespaced: k.Namespaced,
			Custom: !scheme.Scheme.IsGroupRegistered(k.Group), Status: status[k.GroupResource()]})
	}
	return list, nil
}
