// Package policyfacts answers policies' questions from the ownership graph.
package policyfacts

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies"
)

const (
	// mostOfSome is how many references Facts.Dependents, Catch and Depends look at: a millisecond.
	mostOfSome = 3_000
	// referencesEach is how many more they look at for each object that is accepted to be deleted,
	// too.
	referencesEach = 8
)

// Of returns the facts that a graph knows. read calls back with the graph, and may lock it
// meanwhile: for microseconds; for a millisecond if something is searched; longer for Dependents if
// more is accepted (100,000 references take 30 ms, measured), and for Digest, which walks over all
// that would be deleted.
func Of(read func(func(*graph.Graph))) policies.Facts {
	facts := policies.Facts{
		Dependents: func(s policies.Search, accepted int) (also policies.AlsoDeleted, ok bool) {
			read(func(g *graph.Graph) {
				var counted []graph.Counted
				var cut bool
				counted, ok, cut = g.Cascade(s, mostOfSome+referencesEach*accepted)
				also = alsoDeletedOf(counted...)
				also.Cut = cut
			})
			return also, ok
		},
		Instances: func(kind schema.GroupResource) (also policies.AlsoDeleted, ok bool) {
			read(func(g *graph.Graph) {
				var counted graph.Counted
				counted, ok = g.Instances(kind)
				also = alsoDeletedOf(counted)
			})
			return also, ok
		},
		Content: func(namespace string) (also policies.AlsoDeleted, ok bool) {
			read(func(g *graph.Graph) {
				var counted []graph.Counted
				counted, ok = g.Filled(namespace)
				also = alsoDeletedOf(counted...)
			})
			return also, ok
		},
		Owner: func(ref policies.OwnerRef, namespace string) (owner policies.Owner) {
			read(func(g *graph.Graph) {
				owner = g.Owner(metav1.OwnerReference{
					APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID,
				}, namespace)
			})
			return owner
		},
		Kind: func(gvk schema.GroupVersionKind) (kind policies.Kind) {
			read(func(g *graph.Graph) { kind = g.ServedKind(gvk) })
			return kind
		},
		Digest: func(s policies.Search) (digest string, complete bool) {
			var uids []types.UID
			read(func(g *graph.Graph) {
				uids, complete = g.Going(s, policies.MostConfirmed)
			})
			return digestOf(uids), complete
		},
		Depends: func(dependent, on types.UID) (yes bool) {
			read(func(g *graph.Graph) { yes = g.Depends(dependent, on, mostOfSome) })
			return yes
		},
	}
	searching(&facts, read)
	return facts
}

// searching adds the facts that search the graph.
func searching(facts *policies.Facts, read func(func(*graph.Graph))) {
	facts.Catch = func(uid types.UID, kept, wanted func(schema.GroupResource) bool) (catch policies.Catch) {
		read(func(g *graph.Graph) {
			var found []graph.Ref
			found, catch.Complete = g.Catch(uid, kept, wanted, mostOfSome)
			for _, f := range found {
				catch.Objects = append(catch.Objects, caughtOf(g, f))
			}
		})
		return catch
	}
	facts.Holds = func(
		s policies.Search, wanted func(schema.GroupResource) bool,
	) (kinds []policies.Caught, complete bool) {
		read(func(g *graph.Graph) {
			found := make([]graph.Counted, 1)
			if found[0], complete = g.Instances(s.Instances); s.Instances.Empty() {
				found, complete = g.Filled(s.Namespace)
			}
			for _, f := range found {
				if f.Count > 0 && wanted(f.Kind) {
					kinds = append(kinds, caughtOf(g, graph.Ref{Kind: f.Kind}))
				}
			}
		})
		return kinds, complete
	}
}

// digestOf returns ten bytes of a hash of uids, which does not depend on their order. The API
// server chooses uids, so nobody can choose a collision.
func digestOf(uids []types.UID) string {
	slices.Sort(uids)
	hash := sha256.New()
	for _, uid := range uids {
		_, _ = io.WriteString(hash, string(uid)+"\n") // never fails
	}
	return hex.EncodeToString(hash.Sum(nil)[:10])
}

func caughtOf(g *graph.Graph, r graph.Ref) policies.Caught {
	k := g.Kind(r.Kind)
	return policies.Caught{
		Resource:  r.Kind.WithVersion(k.Version),
		Kind:      schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind},
		Namespace: r.Namespace, Name: r.Name, UID: r.UID,
	}
}

func alsoDeletedOf(counted ...graph.Counted) (also policies.AlsoDeleted) {
	for _, f := range counted {
		if f.Count > 0 {
			also.Kinds = append(also.Kinds, policies.KindCount{Resource: f.Kind.String(), Count: f.Count, Names: f.Names})
		}
	}
	return also
}
