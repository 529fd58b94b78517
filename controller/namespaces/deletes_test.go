package namespaces

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

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
