//go:build full

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/e2e/plane"
)

// awaitReleased waits until an object has no owner any more, since a policy kept it.
func (w *fixture) awaitReleased(name string) {
	w.Helper()
	w.until(name+" is released from its owners", func(context.Context) (bool, error) {
		o := w.get(name)
		return len(o.GetOwnerReferences()) == 0 && o.GetAnnotations()["weir.dev/kept"] != "", nil
	})
}

// One of two webhooks goes, and comes again, while the histories are played. Nothing that is
// protected goes unconfirmed: under Fail when a webhook is killed, and under Ignore when it is told
// to end.
func TestNoProtectedObjectGoesWhileWebhooksAreReplaced(t *testing.T) {
	t.Parallel()
	for policy, signal := range map[string]syscall.Signal{"Fail": syscall.SIGKILL, "Ignore": syscall.SIGTERM} {
		for m := range enforced {
			t.Run(policy+"/"+string(m), func(t *testing.T) {
				t.Parallel()
				w, replicas := newReplicated(t, m, planeOf(m))
				w.protectSecrets("failurePolicy: " + policy)
				ctx, end := context.WithCancel(t.Context())
				times := make(chan int)
				go func() { times <- replaceByTurns(ctx, t, replicas, signal) }()
				w.besiege(*sieges)
				end()
				t.Logf("webhooks went and came %d times", <-times)
			})
		}
	}
}

// replaceByTurns ends one replica after the other by a signal, and starts it again, until ctx ends.
// It tells how often.
func replaceByTurns(ctx context.Context, t *testing.T, replicas []replica, signal syscall.Signal) (times int) {
	for ctx.Err() == nil {
		r, other := replicas[times%2], replicas[1-times%2]
		before := other.asked(t)
		err := syscall.Kill(r.Pid(), signal)
		if err == nil {
			<-r.Exited()
			err = r.Restart(context.WithoutCancel(ctx))
		}
		if err != nil {
			t.Error(err)
			return times
		}
		times++
		_ = plane.Poll(ctx, time.Minute, func(context.Context) (bool, error) { return other.asked(t) > before, nil }) // it ends with ctx
	}
	return times
}

// A StatefulSet hands its claims to the pods that it scales away, and the collector of pods deletes
// one whose node is gone. The claims, and what the pod owns, are protected, and stay.
func TestControllersOfKubernetesTakeNothingProtectedAlong(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [persistentvolumeclaims, secrets]}]
    HERE
  protection: {confirmation: Required}`)
		w.make("sec guarded")
		w.awaitRefusal("delete", "secret", "guarded")
		file := filepath.Join(t.TempDir(), "objects.yaml")
		if err := os.WriteFile(file, []byte(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: example.com/db}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: lost}
spec: {nodeName: nowhere, containers: [{name: c, image: example.com/c}]}
`), 0o600); err != nil {
			t.Fatal(err)
		}
		w.mustKubectl("apply", "-f", file)
		lost := object{kind: w.kinds["po"], namespace: w.namespace, name: "lost"}
		pod, err := w.at(lost).Get(t.Context(), "lost", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lost.uid = pod.GetUID()
		w.made["lost"] = lost
		w.own("guarded", "lost")
		claims := w.typed.CoreV1().PersistentVolumeClaims(w.namespace)
		w.until("the claim is there", func(ctx context.Context) (bool, error) {
			list, err := claims.List(ctx, metav1.ListOptions{})
			return err == nil && len(list.Items) == 1, err
		})
		w.mustKubectl("scale", "statefulset", "db", "--replicas=0")
		w.until("the pods are gone", func(ctx context.Context) (bool, error) {
			list, err := w.typed.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
			return err == nil && len(list.Items) == 0, err
		})
		w.awaitReleased("guarded")
		w.until("the claim is released", func(ctx context.Context) (bool, error) {
			claim, err := claims.Get(ctx, "data-db-0", metav1.GetOptions{})
			return err == nil && len(claim.OwnerReferences) == 0 && claim.Annotations["weir.dev/kept"] != "" && claim.DeletionTimestamp == nil, err
		})
	})
}

// A tenant who may edit one namespace makes owners and references by the thousand, and has the
// webhook count them a hundred times at once. Others' requests are answered meanwhile, and what is
// protected stays; also what the tenant adds 14,000 references to.
func TestTenantsReferencesStarveNoReview(t *testing.T) {
	for m := range enforced {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			w, _ := newPaired(t, m, planeOf(m))
			w.protectSecrets()
			tenant := w.as("tenant", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"create", "get", "list", "patch", "delete"}})
			maps := tenant.Resource(w.kinds["cm"].gvr()).Namespace(w.namespace)
			w.make("cm root")
			w.makeOwned("cm", numbered("owned", 4000), "root")
			owners := make([]metav1.OwnerReference, 250)
			for i := range owners {
				owners[i] = w.reference(fmt.Sprintf("owned-%d", i))
			}
			var group errgroup.Group
			group.SetLimit(32)
			for _, name := range numbered("deep", 800) {
				group.Go(func() error {
					o, err := w.kinds["cm"].manifest(name, owners, nil)
					if err == nil {
						_, err = maps.Create(t.Context(), o, metav1.CreateOptions{})
					}
					return err
				})
			}
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}

			guarded := w.of("guarded")
			other := w.beside() // whose objects have names beside those of w
			other.protectSecrets()
			other.make("cm owner\nsec child owners=(owner)")
			flood, end := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					for flood.Err() == nil {
						_ = maps.Delete(flood, w.of("root").name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
					}
				})
			}
			longest := time.Duration(0)
			for range 20 {
				begun := time.Now()
				other.mustRefuse([]string{"may not be deleted without confirmation"}, "delete", "secret", "guarded")
				longest = max(longest, time.Since(begun))
			}
			exempt := other.controller()
			if err := exempt.Resource(w.kinds["cm"].gvr()).Namespace(other.namespace).Delete(t.Context(), other.of("owner").name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			other.awaitReleased("child")
			end()
			all.Wait()
			t.Logf("the longest of 20 refused deletes took %s", longest)

			dead := make([]metav1.OwnerReference, 14000)
			for i := range dead {
				dead[i] = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: types.UID(fmt.Sprint("never-", i))}
			}
			for _, refs := range [][]metav1.OwnerReference{dead, dead[:1]} {
				patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": refs}})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tenant.Resource(w.kinds["sec"].gvr()).Namespace(w.namespace).Patch(t.Context(), w.of("guarded").name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			w.made["guarded"] = guarded
			w.awaitReleased("guarded")
		})
	}
}
