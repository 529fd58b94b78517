//go:build full

package e2e

import (
	"context"
	"net/http"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestUsersOfAnotherAPIServerAreFollowed: weir talks to one API server, whose watches are behind,
// and users write through the other one.
func TestUsersOfAnotherAPIServerAreFollowed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, plane.Options{})
	second := newServers(c)
	c.startWeirSwitched(second, func(*http.Request) bool { return true })
	for _, policy := range []metav1.DeletionPropagation{background, foreground, orphan} {
		t.Run(string(policy), func(t *testing.T) { fixtureIn(t, c.cluster).cascadeSeenLate(second, policy) })
	}
	t.Run("namespace", func(t *testing.T) {
		w := fixtureIn(t, c.cluster)
		w.make(`
			deploy web
			cm     settings owners=(web!block)
			sec    held     finalizers=(example.com/hold)
		`)
		w.settle()
		second.Lag.Hold()
		uid := w.drop()
		w.delete("web", foreground)
		second.Lag.Release()
		w.awaitTerminating("held")
		w.awaitGone("web", "settings")
		w.awaitConditions("NamespaceFinalizersRemaining=True …")
		second.Lag.Hold()
		w.unfinalize("held")
		second.Lag.Release()
		w.awaitDropped(uid)
		w.awaitGone("held")
	})
	c.mustNotRewind()
}

// cascadeSeenLate deletes an owner, and gives half of what it owns to another, before the API
// server that weir talks to shows any of that.
func (w *fixture) cascadeSeenLate(lagging *plane.Server, policy metav1.DeletionPropagation) {
	w.Helper()
	leaves, moved := numbered("leaf", 40), numbered("moved", 40)
	w.make(`
		rc boss
		rc heir
	`)
	w.make(dependents("cm", leaves, "boss!block"))
	w.make(dependents("cm", moved, "boss!block"))
	w.settle()
	lagging.Lag.Hold()
	w.delete("boss", policy)
	for _, name := range moved {
		w.own(name, "heir!block")
	}
	lagging.Lag.Release()
	w.awaitGone("boss")
	if policy != orphan {
		w.awaitGone(leaves...)
	}
	w.mustStay(moved...)
	for _, name := range moved {
		if have := w.owners(name); have != "heir!block" {
			w.Errorf("the owners of %s are (%s), want (heir!block)", name, have)
		}
	}
	if policy == orphan {
		w.mustStay(leaves...)
		for _, name := range leaves {
			w.awaitOwners(name, "")
		}
	}
}

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

// TestAPIServerThatHasNotSeenANamespaceEnd takes what is created in it: it goes with the namespace,
// or after it.
func TestAPIServerThatHasNotSeenANamespaceEnd(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	second := newServers(w)
	users, err := kubernetes.NewForConfig(second.Config)
	if err != nil {
		t.Fatal(err)
	}
	w.startWeir()
	create := func(name string) {
		t.Helper()
		_, err := users.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	create("before") // the other one has seen the namespace
	second.Lag.Hold()
	uid := w.drop()
	create("meanwhile") // the namespace waits 5 s for that
	w.awaitDropped(uid)
	w.mustHoldNothing()
	create("late")
	w.until("it is deleted", func(ctx context.Context) (bool, error) {
		_, err := users.CoreV1().ConfigMaps(w.namespace).Get(ctx, "late", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	second.Lag.Release()
	w.mustComeEmpty()
}

// mustHoldNothing looks whether there are ConfigMaps in the place where the namespace was.
func (w *fixture) mustHoldNothing() {
	w.Helper()
	list, err := w.typed.CoreV1().ConfigMaps(w.namespace).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for i := range list.Items {
		w.Errorf("ConfigMap %s is there, and its namespace is not", list.Items[i].Name)
	}
}

func (w *fixture) signal(s *plane.Server, signal syscall.Signal) {
	w.Helper()
	if err := syscall.Kill(s.Pid(), signal); err != nil {
		w.Fatal(err)
	}
}
