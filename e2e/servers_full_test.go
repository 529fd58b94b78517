//go:build full

package e2e

import (
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestCascadeGoesOnAtAnotherAPIServer: the one that weir talks to dies in the middle, the load
// balancer goes on to the other, and back when it has returned.
func TestCascadeGoesOnAtAnotherAPIServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, plane.Options{})
	second := newServers(c)
	b := c.startWeirBalanced(second.Config.Host)
	for _, policy := range []metav1.DeletionPropagation{background, orphan} {
		t.Run(string(policy), func(t *testing.T) {
			w := fixtureIn(t, c.cluster)
			w.cascadeBroken(policy, func(w *fixture) {
				second.Kill()
				b.To(w.plane.Config.Host)
			})
			if n := b.Connections(w.plane.Config.Host); n == 0 {
				t.Error("weir does not talk to the other API server")
			}
			if err := second.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.To(second.Config.Host)
		})
	}
	// One that is frozen keeps its connections: pings that it does not answer end them.
	t.Run("frozen", func(t *testing.T) {
		w := fixtureIn(t, c.cluster)
		w.cascadeBroken(foreground, func(w *fixture) {
			b.New(w.plane.Config.Host)
			w.signal(second, syscall.SIGSTOP)
		})
		w.signal(second, syscall.SIGCONT)
		b.To(second.Config.Host)
	})
	w := fixtureIn(t, c.cluster)
	w.make(`
		cm boss
		cm leaf owners=(boss)
	`)
	w.delete("boss", background)
	w.awaitGone("boss", "leaf")
	if n := b.Connections(second.Config.Host); n == 0 {
		t.Error("weir does not talk to the API server that is back")
	}
	c.mustNotRewind()
}

func (w *fixture) signal(s *plane.Server, signal syscall.Signal) {
	w.Helper()
	if err := syscall.Kill(s.Pid(), signal); err != nil {
		w.Fatal(err)
	}
}
