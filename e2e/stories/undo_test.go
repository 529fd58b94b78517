//go:build stories

package stories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-dev/weir/e2e/weir"
)

// shop is what an object of a kind of its own owns: what runs for ever, with a volume, and once.
const shop = `apiVersion: v1
kind: PersistentVolume
metadata: {name: story-STORY}
spec:
  capacity: {storage: 1Mi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ""
  hostPath: {path: /var/lib/story-STORY, type: DirectoryOrCreate}
  claimRef: {namespace: story-STORY, name: data-db-0}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, ownerReferences: [OWNER]}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: worker, image: WORKER, imagePullPolicy: IfNotPresent}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, ownerReferences: [OWNER]}
spec:
  serviceName: ""
  selector: {matchLabels: {app: db}}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: worker, image: WORKER, imagePullPolicy: IfNotPresent, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: "", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, ownerReferences: [OWNER]}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: worker, image: WORKER, imagePullPolicy: IfNotPresent, env: [{name: ENDS, value: "yes"}]}]
`

// restored: an object is deleted with all that it owns. kubectl weir restore brings it back: pods
// run, the claim has its volume, what had finished does not run again, and the cluster's collector
// takes nothing of it.
func (s *story) restored() {
	ask := s.asker()
	s.weir()
	s.define("shops", "stories.weir.dev", "Shop")
	s.policy("DeletionPolicy", `  failurePolicy: Fail
  match: {resources: [{apiGroups: [stories.weir.dev], resources: [shops]}]}
  archive: {}
`)
	s.apply("apiVersion: stories.weir.dev/v1\nkind: Shop\nmetadata: {name: shop}\n")
	s.until("the shop has Weir's finalizer", s.hasFinalizer("shops.stories.weir.dev", "shop"))
	owner := fmt.Sprintf("{apiVersion: stories.weir.dev/v1, kind: Shop, name: shop, uid: %s, controller: true}",
		s.must("get", "shops.stories.weir.dev", "shop", "-o", "jsonpath={.metadata.uid}"))
	s.Cleanup(func() { // before the definition, which is protected while there is a shop
		ctx := context.WithoutCancel(s.Context())
		for _, args := range [][]string{
			{"delete", "shops.stories.weir.dev", "shop", "-n", s.namespace, "--ignore-not-found", "--timeout=60s"},
			{"delete", "pv", "story-" + s.name, "--ignore-not-found", "--wait=false"},
		} {
			if out, err := kubectl(ctx, args...); err != nil {
				s.Error(out)
			}
		}
	})
	s.apply(strings.ReplaceAll(shop, "OWNER", owner))
	s.runs()
	s.must("wait", "job/once", "--for=condition=Complete", "--timeout=60s")
	before := s.shop()
	if owned := before["PersistentVolumeClaim data-db-0"]; owned.owner != "StatefulSet db" {
		s.Errorf("the claim is owned by %q", owned.owner)
	}

	s.must("delete", "shops.stories.weir.dev", "shop", "--timeout=60s")
	s.until("all of it is gone", func(context.Context) error {
		if left := slices.Sorted(maps.Keys(s.shop())); len(left) > 0 {
			return errors.New(strings.Join(left, ", "))
		}
		return nil
	})
	tree := s.restore(ask)
	s.runs()
	after := s.shop()
	delete(before, "Job once")
	for name, was := range before {
		if is := after[name]; is.owner != was.owner || is.volume != was.volume || is.uid == was.uid {
			s.Errorf("%s was %+v, and is %+v", name, was, is)
		}
	}
	s.settles()
	if last := s.shop(); !maps.Equal(after, last) {
		s.Errorf("it was restored as %v, and is %v", after, last)
	}
	if out := ask("restore", tree, "--plan"); !strings.Contains(out, "= ") || strings.Contains(out, "made again") {
		s.Errorf("after all was restored the plan is\n%s", out)
	}
}

// asker is kubectl weir, which is to succeed.
func (s *story) asker() func(args ...string) string {
	s.Helper()
	plugin, err := weir.Plugin(s.Context(), s.TempDir())
	if err != nil {
		s.Fatal(err)
	}
	return func(args ...string) string {
		s.Helper()
		out, err := program(s.Context(), plugin, append(args, "--cache-dir", cluster.dir)...).CombinedOutput()
		if err != nil {
			s.Fatalf("kubectl weir %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
}

// restore restores the one tree of the story's namespace.
func (s *story) restore(ask func(...string) string) (tree string) {
	s.Helper()
	trees := strings.Fields(ask("deleted", "-n", s.namespace, "-o", "name"))
	if len(trees) != 1 {
		s.Fatalf("there are the trees %v, want one", trees)
	}
	s.Log(ask("restore", trees[0], "--plan"))
	ask("restore", trees[0])
	return trees[0]
}

// runs waits until the pods of the shop run.
func (s *story) runs() {
	s.Helper()
	for _, workload := range []string{"deployment/web", "statefulset/db"} {
		s.must("rollout", "status", workload, "--timeout=90s")
	}
}

// good is an object of the shop: whose it is, and the volume of a claim.
type good struct{ uid, owner, volume string }

// shop is what there is, but for pods and what workloads have under random names.
func (s *story) shop() map[string]good {
	s.Helper()
	var list struct {
		Items []struct {
			Kind     string
			Metadata struct {
				Name, UID       string
				OwnerReferences []struct{ Kind, Name, UID string }
			}
			Spec struct{ VolumeName string }
		}
	}
	if err := json.Unmarshal([]byte(s.must("get", "shops.stories.weir.dev,deployments,statefulsets,jobs,pvc", "-o", "json")), &list); err != nil {
		s.Fatal(err)
	}
	uids, out := map[string]bool{}, map[string]good{}
	for _, o := range list.Items {
		uids[o.Metadata.UID] = true
	}
	for _, o := range list.Items {
		g := good{uid: o.Metadata.UID, volume: o.Spec.VolumeName}
		for _, r := range o.Metadata.OwnerReferences {
			if g.owner = r.Kind + " " + r.Name; !uids[r.UID] {
				g.owner += ", which is gone"
			}
		}
		out[o.Kind+" "+o.Metadata.Name] = g
	}
	return out
}

// settles waits until the cluster's collector has done what there is to do: it works in the order
// of what it sees.
func (s *story) settles() {
	s.Helper()
	for n := range 2 {
		s.apply(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settles-%d}\n", n))
		uid := s.must("get", "configmap", fmt.Sprintf("settles-%d", n), "-o", "jsonpath={.metadata.uid}")
		s.apply(fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: settles-%[1]d, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: settles-%[1]d, uid: %[2]s}]}\n", n, uid))
		s.must("delete", "configmap", fmt.Sprintf("settles-%d", n))
		s.until("what belonged to it is collected", s.said("", "get", "secret", fmt.Sprintf("settles-%d", n), "--ignore-not-found", "-o", "name"))
	}
}
