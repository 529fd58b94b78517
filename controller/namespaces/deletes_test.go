package namespaces

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
)

func TestWhatIsTheDrainersToDelete(t *testing.T) {
	pods, secrets := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "secrets"}
	for name, c := range map[string]struct {
		namespace string
		wave      int // under way; -1: none yet
		kind      schema.GroupResource
		awaited   bool
		want      bool
	}{
		"in another namespace":                 {"other", 0, pods, false, false},
		"before it is known what is there":     {"shop", -1, pods, false, false},
		"of the wave under way":                {"shop", 0, pods, false, true},
		"of the wave under way, and awaited":   {"shop", 0, pods, true, true},
		"of a later wave":                      {"shop", 0, secrets, false, true},
		"of a later wave, awaited by an owner": {"shop", 0, secrets, true, false},
		"its wave has come":                    {"shop", 1, secrets, true, true},
		"of an earlier wave":                   {"shop", 1, pods, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &progress{}
			if c.wave >= 0 {
				p.reached.Store(&reached{order{}, c.wave})
			}
			d := &Drainer{begun: map[string]*progress{"shop": p}}
			if got := d.Deletes(graph.Ref{Kind: c.kind, Namespace: c.namespace, Name: "a"}, c.awaited); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

// TestWhatIsLeftWhenDrainingEndsIsTold to who collects, if anybody does, and only of namespaces
// that were drained.
func TestWhatIsLeftWhenDrainingEndsIsTold(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		ends     string
		collects bool
		want     []types.UID
	}{
		"of one that was drained":  {"shop", true, []types.UID{"one", "two"}},
		"of one that was not":      {"other", true, nil},
		"where nobody collects it": {"shop", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			store := follow.NewStore()
			store.Apply(graph.Serving{Resources: []graph.Resource{{Resource: "pods", Kind: "Pod", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true, Deletable: true, Listable: true}}})
			store.Apply(graph.ListBegins{Kind: pods}, graph.ListEnds{Kind: pods})
			for uid, in := range map[types.UID]string{"one": "shop", "two": "shop", "three": "other"} {
				store.Apply(graph.Observed{Object: &graph.Object{Kind: pods, UID: uid, Namespace: in, Name: string(uid), ResourceVersion: "1"}})
			}
			var reported []types.UID
			o := Options{Store: store}
			if c.collects {
				o.Left = func(uid types.UID) { reported = append(reported, uid) }
			}
			d := New(o)
			defer d.Close()
			d.begin("shop", "uid")
			d.end(c.ends)
			slices.Sort(reported)
			if !slices.Equal(reported, c.want) {
				t.Errorf("reported %v, want %v", reported, c.want)
			}
		})
	}
}
