package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestObjectWithMoreOwnersThanAreFollowedIsKept, and says why; one with as many as are followed is
// judged by all of them.
func TestObjectWithMoreOwnersThanAreFollowedIsKept(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`cm boss`)
	owners := []metav1.OwnerReference{w.reference("boss")}
	for i := range 2000 {
		owners = append(owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "nobody", UID: types.UID(fmt.Sprintf("nobody-%d", i))})
	}
	w.create("cm", "many", owners)
	w.create("cm", "most", owners[:256])
	w.delete("boss", background)
	w.awaitGone("boss", "most")
	if e := w.awaitEvent("many", "OwnerRefUnresolvable"); !strings.Contains(e.Message, "it has 2001 owner references, and no more than 256 are followed") {
		t.Errorf("%s", e.Message)
	}
	w.mustStay("many")
}
