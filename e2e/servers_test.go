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
	"github.com/weir-dev/weir/e2e/weir"
)

// TestUsersOfAnotherAPIServerAreFollowed: weir talks to one API server, whose watches are behind, and users write through the
// other one.
func TestUsersOfAnotherAPIServerAreFollowed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, plane.Options{})
	second := newServers(c)
	c.startWeirSwitched(second, func(*http.Request) bool { return true })
	for _, policy := range []metav1.DeletionPropagation{background, foreground, orphan} {
		t.Run(string(policy), func(t *testing.T) { worldIn(t, c.cluster).cascadeSeenLate(second, policy) })
	}
	t.Run("namespace", func(t *testing.T) {
		w := worldIn(t, c.cluster)
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

// cascadeSeenLate deletes an owner, and gives half of what it owns to another, before the API server that weir talks to shows
// any of that.
func (w *world) cascadeSeenLate(lagging *plane.Server, policy metav1.DeletionPropagation) {
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

// TestCascadeGoesOnAtAnotherAPIServer: the one that weir talks to dies in the middle, the load balancer goes on to the other,
// and back when it has returned.
func TestCascadeGoesOnAtAnotherAPIServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, plane.Options{})
	second := newServers(c)
	b := c.startWeirBalanced(second.Config.Host)
	for _, policy := range []metav1.DeletionPropagation{background, foreground, orphan} {
		t.Run(string(policy), func(t *testing.T) {
			w := worldIn(t, c.cluster)
			w.cascadeBroken(policy, func(w *world) {
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
		w := worldIn(t, c.cluster)
		w.cascadeBroken(background, func(w *world) {
			b.New(w.plane.Config.Host)
			w.signal(second, syscall.SIGSTOP)
		})
		w.signal(second, syscall.SIGCONT)
		b.To(second.Config.Host)
	})
	w := worldIn(t, c.cluster)
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

// TestAPIServersBehindEachOtherDeleteNothingThatIsOwned: what weir knows of some kinds comes from an API server whose watches are
// behind, and what it knows of the others from one whose are not.
func TestAPIServersBehindEachOtherDeleteNothingThatIsOwned(t *testing.T) {
	t.Parallel()
	c := newCluster(t, plane.Options{})
	second := newServers(c)
	c.startWeirSwitched(second, about("configmaps"))
	for name, f := range map[string]func(*world, *plane.Server){
		"a dependent was moved to another owner": (*world).movedUnseen,
		"a dependent was orphaned by hand":       (*world).releasedUnseen,
		"an owner was made":                      (*world).ownerUnseen,
		"dependents were made, orphan":           (*world).orphansUnseen,
		"dependents were made, foreground":       (*world).foregroundUnseen,
		"content was made in a namespace":        (*world).contentUnseen,
	} {
		t.Run(name, func(t *testing.T) {
			w := worldIn(t, c.cluster)
			t.Cleanup(second.Lag.Release)
			f(w, second)
		})
	}
	c.mustNotRewind()
}

// The owner's end is seen, and not that its dependent has another owner by now.
func (w *world) movedUnseen(behind *plane.Server) {
	w.make(`
		rc boss
		rc heir
		cm moved owners=(boss!block)
		cm leaf  owners=(boss!block)
	`)
	w.settle()
	before := w.sum("weir_actions_total", "action", "delete", "result", "stale")
	behind.Lag.Hold()
	w.own("moved", "heir!block")
	w.delete("boss", background)
	w.awaitGone("leaf")
	w.awaitMetrics("it has tried to delete what was moved", func(m weir.Metrics) bool {
		return m.Sum("weir_actions_total", "action", "delete", "result", "stale") > before
	})
	w.alive("moved")
	behind.Lag.Release()
	w.mustStay("moved")
	w.awaitOwners("moved", "heir!block")
}

// The same, of one that has no owner any more.
func (w *world) releasedUnseen(behind *plane.Server) {
	w.make(`
		rc boss
		cm free owners=(boss!block)
		cm leaf owners=(boss!block)
	`)
	w.settle()
	behind.Lag.Hold()
	w.own("free")
	w.delete("boss", foreground)
	w.awaitGone("leaf")
	behind.Lag.Release()
	w.awaitGone("boss")
	w.mustStay("free")
}

// The dependent is seen, and not its owner, which a live read finds.
func (w *world) ownerUnseen(behind *plane.Server) {
	w.make("cm seen-before")
	w.settle()
	before := w.sum("weir_lookups_total", "answer", "present")
	behind.Lag.Hold()
	w.make(`
		cm  boss
		sec leaf owners=(boss)
	`)
	w.awaitMetrics("it has looked for the owner", func(m weir.Metrics) bool { return m.Sum("weir_lookups_total", "answer", "present") > before })
	w.alive("leaf")
	behind.Lag.Release()
	w.mustStay("leaf", "boss")
}

// The owner is let go before a dependent is seen, which is released when it is.
func (w *world) orphansUnseen(behind *plane.Server) {
	w.make(`
		rc  boss
		sec seen owners=(boss!block)
		cm  other
	`)
	w.settle()
	behind.Lag.Hold()
	w.make("cm unseen owners=(boss!block)")
	w.delete("boss", orphan)
	w.awaitGone("boss")
	behind.Lag.Release()
	w.mustStay("seen", "unseen")
	w.awaitOwners("unseen", "")
}

// The same of foreground deletion, which collects it, and not what another owner has by now.
func (w *world) foregroundUnseen(behind *plane.Server) {
	w.make(`
		rc  boss
		rc  heir
		sec seen owners=(boss!block)
		cm  other
	`)
	w.settle()
	behind.Lag.Hold()
	w.make(`
		cm unseen owners=(boss!block)
		cm moved  owners=(boss!block)
	`)
	w.own("moved", "heir")
	w.delete("boss", foreground)
	w.awaitGone("seen", "boss")
	behind.Lag.Release()
	w.awaitGone("unseen")
	w.mustStay("moved")
}

// The namespace looks empty to every watch, and is not: the lists that prove it empty are no older than they are asked for.
func (w *world) contentUnseen(behind *plane.Server) {
	w.make("sec seen")
	w.settle()
	behind.Lag.Hold()
	w.make("cm held finalizers=(example.com/hold)")
	uid := w.drop()
	w.awaitTerminating("held")
	w.awaitConditions("WeirDraining=True Waiting: …")
	w.unfinalize("held")
	w.awaitDropped(uid) // by lists alone
	w.awaitGone("held", "seen")
	behind.Lag.Release()
}

// TestAPIServerThatHasNotSeenANamespaceEnd takes what is created in it: it goes with the namespace, or after it.
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
func (w *world) mustHoldNothing() {
	w.Helper()
	list, err := w.typed.CoreV1().ConfigMaps(w.namespace).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for i := range list.Items {
		w.Errorf("ConfigMap %s is there, and its namespace is not", list.Items[i].Name)
	}
}

func (w *world) signal(s *plane.Server, signal syscall.Signal) {
	w.Helper()
	if err := syscall.Kill(s.Pid(), signal); err != nil {
		w.Fatal(err)
	}
}

// mustNotRewind looks whether weir has taken an API server that is late for one that was restored from a backup.
func (w *world) mustNotRewind() {
	w.Helper()
	if n := w.sum("weir_history_rewound_total"); n > 0 {
		w.Errorf("the history went back %.0f times for weir", n)
	}
}

// sum is what one of weir's metrics says.
func (w *world) sum(metric string, labels ...string) float64 {
	w.Helper()
	m, err := w.weir.Metrics(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return m.Sum(metric, labels...)
}
