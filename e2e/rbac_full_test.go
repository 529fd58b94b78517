//go:build full

package e2e

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestKindThatWeirMayNotSeeIsNotItsToCollect: with everything granted but
// Secrets, all other kinds are collected in every way, and what refers to a
// Secret is kept.
func TestKindThatWeirMayNotSeeIsNotItsToCollect(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	kubeconfig, err := restricted(w.Context(), w.plane, weirUser, w.roleWithout("secrets"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w.weir = w.runWeir(weir.Options{Kubeconfig: kubeconfig})
	w.make(`
		cm  boss
		cm  leaf       owners=(boss)
		sec secret     owners=(boss)
		cm  foreground
		cm  of-fg      owners=(foreground!block)
		cm  orphan
		cm  of-orphan  owners=(orphan)
		sec owner
		cm  of-secret  owners=(owner)
	`)
	delete(w.kinds, "sec")
	w.delete("boss", background)
	w.delete("foreground", foreground)
	w.delete("orphan", orphan)
	w.awaitGone("boss", "leaf", "foreground", "of-fg")
	w.awaitOwners("of-orphan", "")
	// The right might be on its way, as while a cluster starts: for a minute the kind is one that
	// fails, and the owner stays.
	w.awaitGoneIn(2*patience, "orphan")
	if took := time.Since(began); took < time.Minute {
		t.Errorf("the owner of orphans went after %s", took)
	}
	m, err := w.weir.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Sum("weir_graph_kinds", "state", "forbidden"); n != 1 {
		t.Errorf("%.0f kinds are forbidden, want 1", n)
	}
	w.awaitEvent("of-secret", "OwnerRefUnresolvable")
	w.mustStay("secret", "of-orphan", "owner", "of-secret")
}
