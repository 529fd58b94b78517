package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestRestoredClusterLosesNothingThatHasAnOwner puts etcd back to a backup under a
// running weir, which has seen owners go that are there again then, under the same
// uids; some of its deletions were refused, and would not be by the restored cluster.
func TestRestoredClusterLosesNothingThatHasAnOwner(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]plane.RestoreOptions{
		"to older resourceVersions":      {},
		"with a leap to newer ones":      {Bump: 1_000_000_000},
		"with a step past the last ones": {Bump: 5_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCluster(t, plane.Options{})
			w.startWeir()
			leaves, orphans := numbered("leaf", 20), numbered("orphan", 20)
			w.make(`
				cm boss
				cm leaving
				cm letting-go
				cm held    owners=(boss) finalizers=(example.com/hold)
				cm refused owners=(boss)
				cm waiting owners=(leaving!block) finalizers=(example.com/hold)
				sec other  owners=(boss)
			`)
			w.make(dependents("cm", leaves, "boss"))
			w.make(dependents("cm", orphans, "letting-go"))
			w.settle()
			snapshot := filepath.Join(t.TempDir(), "snapshot.db")
			if err := w.plane.Snapshot(t.Context(), snapshot); err != nil {
				t.Fatal(err)
			}

			w.newHook(false, named("refused", refusal(403, 0)))
			w.delete("boss", background)
			w.delete("leaving", foreground)
			w.delete("letting-go", orphan)
			w.awaitGone(append(leaves, "boss", "other", "letting-go")...)
			w.awaitTerminating("held")
			w.awaitTerminating("waiting")
			w.awaitEvent("refused", "CollectionRefused")

			if err := w.plane.Restore(t.Context(), snapshot, o); err != nil {
				t.Fatal(err)
			}
			w.mustNotice(time.Now())
			w.until("an Event says it", func(ctx context.Context) (bool, error) {
				events, err := w.typed.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{
					FieldSelector: "involvedObject.name=" + metav1.NamespaceSystem + ",reason=HistoryRewound"})
				return err == nil && len(events.Items) > 0, nil
			})
			// What a settled weir has not deleted it will not.
			all := append(append(leaves, orphans...), "boss", "leaving", "letting-go", "held", "refused", "waiting", "other")
			w.mustStay(all...)
			for _, name := range append(leaves, "held", "refused", "other") {
				if have := w.owners(name); have != "boss" {
					t.Errorf("the owners of %s are (%s), want (boss)", name, have)
				}
			}
			// It collects as before.
			w.delete("boss", background)
			w.delete("leaving", foreground)
			w.delete("letting-go", orphan)
			w.awaitGone(append(leaves, "boss", "refused", "other", "letting-go")...)
			w.awaitTerminating("held")
			w.awaitTerminating("waiting")
			w.unfinalize("held", "waiting")
			w.awaitGone("held", "waiting", "leaving")
			w.mustStay(orphans...)
			for _, name := range orphans {
				if have := w.owners(name); have != "" {
					t.Errorf("the owners of %s are (%s), want none", name, have)
				}
			}
		})
	}
}

// mustNotice makes sure that weir finds out that the history went back, and says so to whoever
// looks, in its metrics and its log.
func (w *fixture) mustNotice(since time.Time) {
	w.Helper()
	w.awaitMetrics("it knows that the history went back", func(m weir.Metrics) bool { return m.Sum("weir_history_rewound_total") > 0 })
	w.Logf("noticed %s after the API server was back", time.Since(since).Round(time.Millisecond))
	w.until("every kind is listed anew", func(ctx context.Context) (bool, error) { return w.weir.Ready(ctx) == nil, nil })
	w.Logf("listed anew %s after the API server was back", time.Since(since).Round(time.Millisecond))
	text, err := w.weir.Output()
	if err != nil {
		w.Fatal(err)
	}
	if !strings.Contains(text, "the API server's history went back") {
		w.Error("the log does not say it")
	}
}
