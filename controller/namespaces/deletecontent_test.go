package namespaces

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/graph"
)

// TestWhatIsLoggedOfDeletes counts each object once, and each kind that could only be deleted
// unseen, if that was refused.
func TestWhatIsLoggedOfDeletes(t *testing.T) {
	pods, tokens, keys := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "tokens"}, schema.GroupResource{Resource: "keys"}
	d := &deletes{p: &pass{progress: &progress{refused: refused{}}}, kept: map[types.UID]bool{}, refusals: map[schema.GroupResource]*drain.Refusals{}}
	no := errors.New("no")
	d.take(graph.Ref{Kind: pods, UID: "1", Name: "one"}, nil)
	d.take(graph.Ref{Kind: pods, UID: "2", Name: "two"}, no)
	d.take(graph.Ref{Kind: pods, UID: "2", Name: "two"}, no)
	d.takeCollection(tokens, no)
	d.takeCollection(keys, no)
	d.takeCollection(schema.GroupResource{Resource: "seals"}, nil)
	if d.accepted != 1 || d.refused != 3 {
		t.Errorf("%d accepted and %d refused, want 1 and 3", d.accepted, d.refused)
	}
	if len(d.refusals) != 3 {
		t.Errorf("refusals of %d kinds, want 3: %v", len(d.refusals), d.refusals)
	}
	if len(d.p.refused) != 1 {
		t.Errorf("%d objects are not tried again at once, want 1: %v", len(d.p.refused), d.p.refused)
	}
}
