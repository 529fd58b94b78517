//go:build full

package e2e

import (
	"os"
	"slices"
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestAPIServersAreUpgradedOneAfterTheOther, from the version of the plane to the current one: weir
// talks to both, by turns. In the end, and between, all is collected that is to go, and nothing
// else.
func TestAPIServersAreUpgradedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	current, err := plane.BuildCurrent(t.Context(), os.Stderr, plane.APIServer)
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, plane.Options{})
	second := newServers(c)
	first := c.plane.Config.Host
	b := c.startWeirBalanced(first, second.Config.Host)
	b.To(first)
	second.Kill()
	c.worksAs("first alone")
	second.Path = current[plane.APIServer]
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.To(first, second.Config.Host)
	w := c.worksAs("both")
	w.awaitDropped(w.drop()) // which waits 5 s, since there are several

	c.plane.Child(plane.APIServer).Path = current[plane.APIServer]
	if err := c.plane.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.worksAs("after")
	c.mustNotRewind()
}

// worksAs has cascades of all three kinds end right in one state of the cluster, and returns where.
func (w *fixture) worksAs(state string) *fixture {
	w.Helper()
	in := fixtureIn(w.T, w.cluster)
	gone, kept := numbered("gone", 10), numbered("kept", 10)
	in.make(`
		rc background
		rc foreground
		rc orphan
		rc staying
	`)
	for i, owner := range []string{"background", "foreground"} {
		in.make(dependents("cm", gone[5*i:5*i+5], owner+"!block"))
	}
	in.make(dependents("cm", kept[:5], "orphan!block"))
	in.make(dependents("cm", kept[5:], "staying!block, background"))
	in.settle()
	in.delete("background", background)
	in.delete("foreground", foreground)
	in.delete("orphan", orphan)
	in.awaitGone(append(slices.Clone(gone), "background", "foreground", "orphan")...)
	in.mustStay(append(kept, "staying")...)
	w.Logf("%s: all ended right", state)
	return in
}
