//go:build full

package e2e

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/e2e/plane"
)

var handOvers = flag.Int("handover.rounds", 2, "how often collecting is handed from kube-controller-manager to Weir, and back")

const migrationLease = "collectors"

// migration is the configuration by which kube-controller-manager runs its two controllers only
// while it holds the Lease.
const migration = `
apiVersion: controllermanager.config.k8s.io/v1
kind: LeaderMigrationConfiguration
leaderName: ` + migrationLease + `
controllerLeaders:
- {name: garbage-collector-controller, component: "*"}
- {name: namespace-controller, component: "*"}
`

// underTheLease are the controllers and flags with which a kube-controller-manager collects only
// while it holds the Lease. That of 1.36 ends when it begins to with --enable-leader-migration (RB
// 9.9), so there it is one that has only these two controllers, and the Lease is its own. One of
// 1.30 takes the Lease only after its serviceaccount-token-controller has started, and has to be
// allowed to (RB 9.10).
func (w *fixture) underTheLease() (plane.Controllers, []string) {
	w.Helper()
	version, err := w.typed.Discovery().ServerVersion()
	if err != nil {
		w.Fatal(err)
	}
	if minor, err := strconv.Atoi(version.Minor); err != nil || minor >= 36 {
		return plane.Collectors, []string{"--leader-elect-resource-name=" + migrationLease}
	}
	config := filepath.Join(w.plane.Dir, "migration.yaml")
	if err := os.WriteFile(config, []byte(migration), 0o600); err != nil {
		w.Fatal(err)
	}
	w.grant(metav1.NamespaceSystem, migrationLease, "system:kube-controller-manager", rbacv1.PolicyRule{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch", "create", "update"}})
	return plane.Collectors + ",serviceaccount-token-controller", []string{"--enable-leader-migration", "--leader-migration-config=" + config}
}

// TestCollectingIsHandedOver: kube-controller-manager and Weir wait for the same Lease. While
// owners are deleted all the time, each of the two ends in turn, and the other goes on. No object
// is collected by both, nothing is left, and for no longer than the Lease lasts does nothing go.
func TestCollectingIsHandedOver(t *testing.T) {
	t.Parallel()
	const lease, renew, retry = 15 * time.Second, 10 * time.Second, 2 * time.Second // kube-controller-manager's, and Weir's, where nothing else is said
	w := newCluster(t, plane.Options{Audit: true})
	controllers, flags := w.underTheLease()
	flags = append(flags, "--leader-elect=true", "--leader-elect-lease-duration="+lease.String(), "--leader-elect-renew-deadline="+renew.String(), "--leader-elect-retry-period="+retry.String())
	ctx := context.WithoutCancel(t.Context())
	start := func() {
		t.Helper()
		if err := w.plane.StartController(ctx, controllers, flags...); err != nil {
			t.Fatal(err)
		}
	}
	start()
	w.awaitMigrationLease(false)
	w.startWeir("--mode=replace", "--migration-lease=kube-system/"+migrationLease, "--leader-elect-lease-duration="+lease.String())

	l := w.traffic()
	w.awaitCollector(false)
	for range *handOvers {
		if err := w.plane.StopController(); err != nil {
			t.Fatal(err)
		}
		w.awaitCollector(true)
		start() // it waits now
		w.awaitCollector(true)
		if err := w.weir.Stop(plane.DefaultGrace); err != nil {
			t.Fatal(err)
		}
		w.awaitCollector(false)
		if err := w.weir.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	l.end(t)
	w.until("nothing is left", func(ctx context.Context) (bool, error) {
		left, err := w.typed.CoreV1().Secrets(w.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(left.Items) == 0, err
	})
	most := lease + time.Second // Weir takes the Lease at the moment in which it is over
	if controllers != plane.Collectors {
		most = 2 * lease // kube-controller-manager first waits for its other Lease, which the one before it has not given back either
	}
	w.mustHandOver(2**handOvers, most)
}

// mustHandOver looks at what was collected: each object once, by one of the two at a time, and
// never for long by none. A delete that was under way when its client ended counts as none of
// theirs.
func (w *fixture) mustHandOver(times int, most time.Duration) {
	w.Helper()
	all := append(w.collected(builtinCollector), w.collected(weirUser)...)
	slices.SortFunc(all, func(a, b request) int { return a.Ended.Compare(b.Ended) })
	names := map[string]bool{}
	turns, longest, by := 0, time.Duration(0), ""
	for i, r := range all {
		if names[r.Object.Name] {
			w.Errorf("%s was collected twice", r.Object.Name)
		}
		names[r.Object.Name] = true
		if i == 0 {
			continue
		}
		if all[i-1].User.Username != r.User.Username {
			turns++
		}
		if none := r.Ended.Sub(all[i-1].Ended); none > longest {
			longest, by = none, r.User.Username
		}
	}
	w.Logf("%d objects were collected, in %d turns; for %s at most none was, until %s collected", len(names), turns, longest.Round(10*time.Millisecond), by)
	if turns != times {
		w.Errorf("collecting went from one to the other %d times, want %d: both collected at once", turns, times)
	}
	if longest > most {
		w.Errorf("for %s nothing was collected, want %s at most", longest, most)
	}
}

// collected are the deletes of Secrets by a user that were carried out, each once.
func (w *fixture) collected(user string) []request {
	w.Helper()
	return slices.DeleteFunc(w.audit(user), func(r request) bool {
		return r.Verb != "delete" || r.Object.Resource != "secrets" || r.Status.Code != 200
	})
}

// awaitCollector waits until Weir, or the other, holds the Lease, and what is garbage then is gone.
func (w *fixture) awaitCollector(isWeir bool) {
	w.Helper()
	w.awaitMigrationLease(isWeir)
	secrets := func(ctx context.Context) map[types.UID]bool {
		list, err := w.typed.CoreV1().Secrets(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			w.Fatal(err)
		}
		there := map[types.UID]bool{}
		for i := range list.Items {
			there[list.Items[i].UID] = true
		}
		return there
	}
	var garbage map[types.UID]bool
	w.until("there is garbage", func(ctx context.Context) (bool, error) {
		garbage = secrets(ctx)
		return len(garbage) > 0, nil
	})
	w.until("it is collected", func(ctx context.Context) (bool, error) {
		there := secrets(ctx)
		maps.DeleteFunc(garbage, func(uid types.UID, _ bool) bool { return !there[uid] })
		return len(garbage) == 0, nil
	})
}

// awaitMigrationLease waits until Weir holds the Lease, or another process does.
func (w *fixture) awaitMigrationLease(isWeir bool) {
	w.Helper()
	w.until("the migration Lease is held", func(ctx context.Context) (bool, error) {
		lease, err := w.typed.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, migrationLease, metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return false, nil //nolint:nilerr // it may not be there yet
		}
		return *lease.Spec.HolderIdentity != "" && strings.HasPrefix(*lease.Spec.HolderIdentity, "weir_") == isWeir, nil
	})
}

// traffic makes pairs of an owner and a dependent, and deletes the owner, all the time.
type traffic struct {
	stop  context.CancelFunc
	ended chan error
}

func (w *fixture) traffic() *traffic {
	w.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(w.Context()))
	l := &traffic{stop: stop, ended: make(chan error, 1)}
	w.Cleanup(stop)
	go func() { l.ended <- w.cascade(ctx) }()
	return l
}

// end returns when the last of them is made.
func (l *traffic) end(t *testing.T) {
	t.Helper()
	l.stop()
	if err := <-l.ended; err != nil {
		t.Fatalf("make and delete owners: %v", err)
	}
}

func (w *fixture) cascade(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := w.cascadeOfOne(context.WithoutCancel(ctx), n); err != nil {
			return err
		}
	}
}

func (w *fixture) cascadeOfOne(ctx context.Context, n int) error {
	core := w.typed.CoreV1()
	owner, err := core.ConfigMaps(w.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("boss-", n)}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	dependent := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("leaf-", n), OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}}}
	_, err = core.Secrets(w.namespace).Create(ctx, dependent, metav1.CreateOptions{})
	return cmp.Or(err, core.ConfigMaps(w.namespace).Delete(ctx, owner.Name, metav1.DeleteOptions{}))
}
