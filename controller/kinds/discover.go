// Package kinds asks an API server which kinds it serves, and turns the answer into what the graph
// needs.
//
// It has no goroutines and no locks.
package kinds

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"

	"github.com/weir-dev/weir/controller/graph"
)

// Ignored are kinds that own nothing, are owned by nothing, and change all the time. They are the
// reference's (RB 1.2).
var Ignored = sets.New(
	schema.GroupResource{Resource: "events"},
	schema.GroupResource{Group: "events.k8s.io", Resource: "events"},
)

// Kinds that more than one part of Weir knows.
var (
	ConfigMaps  = schema.GroupResource{Resource: "configmaps"}
	Namespaces  = schema.GroupResource{Resource: "namespaces"}
	Definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	APIServices = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
)

// Twins are kinds that serve the same objects as another. One list, and one delete, is for both.
var Twins = map[schema.GroupResource]schema.GroupResource{
	{Group: "events.k8s.io", Resource: "events"}: {Resource: "events"},
}

// Discover returns the kinds that the API server serves. Groups that do not answer keep what was
// known of them: an aggregated API that is down still exists. An answer without namespaces is an
// error, since every cluster has them.
//
// unknown are the group versions that do not answer and of which nothing was known.
func Discover(
	client discovery.DiscoveryInterface, ignored sets.Set[schema.GroupResource], before []graph.Resource,
) (found []graph.Resource, unknown []string, err error) {
	groups, lists, err := client.ServerGroupsAndResources()
	failed := sets.New[schema.GroupVersion]()
	if partly := (*discovery.ErrGroupDiscoveryFailed)(nil); errors.As(err, &partly) {
		failed = sets.KeySet(partly.Groups)
	} else if err != nil {
		return nil, nil, fmt.Errorf("discover the kinds that the cluster serves: %w", err)
	}
	found = resourcesOf(groups, lists, ignored)
	if !slices.ContainsFunc(found, func(r graph.Resource) bool { return r.GroupResource() == Namespaces }) {
		// The client takes a 404 for /api as an empty group, and no API server sends that.
		return nil, nil, errors.New("discover the kinds that the cluster serves: the answer has no namespaces")
	}
	found, unknown = keepFailed(found, before, failed)
	return found, unknown, err
}

// resourcesOf turns discovery's lists into kinds, each with its best version: the preferred one, or
// if that cannot be collected, the first that can.
func resourcesOf(
	groups []*metav1.APIGroup, lists []*metav1.APIResourceList, ignored sets.Set[schema.GroupResource],
) []graph.Resource {
	rank := map[schema.GroupVersion]int{}
	for _, g := range groups {
		for i, v := range g.Versions {
			rank[schema.GroupVersion{Group: g.Name, Version: v.Version}] = i + 1
		}
		rank[schema.GroupVersion{Group: g.Name, Version: g.PreferredVersion.Version}] = 0
	}
	type version struct {
		gv schema.GroupVersion
		r  metav1.APIResource
	}
	byResource := map[schema.GroupResource][]version{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // not a version that a reference could name
		}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				gr := gv.WithResource(r.Name).GroupResource()
				byResource[gr] = append(byResource[gr], version{gv, r})
			}
		}
	}
	resources := make([]graph.Resource, 0, len(byResource))
	place := func(v version) int {
		if collectable(v.r) {
			return rank[v.gv]
		}
		return len(rank) + 1 + rank[v.gv]
	}
	for gr, versions := range byResource {
		slices.SortStableFunc(versions, func(a, b version) int { return cmp.Compare(place(a), place(b)) })
		best := versions[0]
		r := graph.Resource{
			Group: gr.Group, Resource: gr.Resource, Kind: best.r.Kind, Version: best.gv.Version,
			Namespaced: best.r.Namespaced, Collected: collectable(best.r) && !ignored.Has(gr),
			Deletable: slices.Contains(best.r.Verbs, "delete"), Listable: slices.Contains(best.r.Verbs, "list"),
			Patchable: slices.Contains(best.r.Verbs, "patch"),
		}
		for _, v := range versions {
			r.Versions = append(r.Versions, v.gv.Version)
		}
		slices.Sort(r.Versions)
		resources = append(resources, r)
	}
	slices.SortFunc(resources, Compare)
	return resources
}

func collectable(r metav1.APIResource) bool {
	return sets.New(r.Verbs...).HasAll("delete", "list", "watch")
}

// keepFailed adds what was known of the versions that failed to answer, and returns those of which
// nothing was known. A kind that is used through such a version stays with it: another version
// would mean a new watch and list, until the first answers again.
func keepFailed(
	found, before []graph.Resource, failed sets.Set[schema.GroupVersion],
) (all []graph.Resource, unknown []string) {
	if len(failed) == 0 {
		return found, nil
	}
	unheard := failed.Clone()
	index := map[schema.GroupResource]int{}
	for i, r := range found {
		index[r.GroupResource()] = i
	}
	for _, old := range before {
		var kept []string
		for _, v := range old.Versions {
			if gv := (schema.GroupVersion{Group: old.Group, Version: v}); failed.Has(gv) {
				kept = append(kept, v)
				unheard.Delete(gv)
			}
		}
		if len(kept) == 0 {
			continue
		}
		if i, ok := index[old.GroupResource()]; ok {
			versions := slices.Compact(slices.Sorted(slices.Values(append(found[i].Versions, kept...))))
			if slices.Contains(kept, old.Version) {
				found[i] = old
			}
			found[i].Versions = versions
			continue
		}
		old.Versions = kept
		found = append(found, old)
	}
	slices.SortFunc(found, Compare)
	for gv := range unheard {
		unknown = append(unknown, gv.String())
	}
	slices.Sort(unknown)
	return found, unknown
}

// Compare sorts kinds by group and resource.
func Compare(a, b graph.Resource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
}
