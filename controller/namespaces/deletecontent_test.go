package namespaces

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/graph"
)

// TestWhatIsLoggedOfDeletes counts what was accepted, and what was refused.
func TestWhatIsLoggedOfDeletes(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	d := &deletes{pass: &pass{Drainer: &Drainer{}, progress: &progress{went: went{}}}, refusals: map[schema.GroupResource]*drain.Refusals{}}
	no := errors.New("no")
	d.take(graph.Ref{Kind: pods, UID: "1", Name: "one"}, true, nil)
	d.take(graph.Ref{Kind: pods, UID: "2", Name: "two"}, true, no)
	d.take(graph.Ref{Kind: pods, UID: "3", Name: "three"}, false, nil)
	if d.accepted != 2 || d.refused != 1 || d.went[pods] != 1 {
		t.Errorf("%d accepted, %d of them sent, and %d refused, want 2, 1 and 1", d.accepted, d.went[pods], d.refused)
	}
	if len(d.refusals) != 1 {
		t.Errorf("refusals of %d kinds, want 1: %v", len(d.refusals), d.refusals)
	}
}
