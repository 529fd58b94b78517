//go:build stories

package stories

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-dev/weir/e2e/weir"
)

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

// governed is what says who may do what in a namespace, and how much there may be.
const governed = `apiVersion: v1
kind: ServiceAccount
metadata: {name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader}]
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: most}
spec: {hard: {pods: "2", configmaps: "4"}}
`

// chartOf are the files of a chart of a Deployment and a ConfigMap.
var chartOf = map[string]string{
	"Chart.yaml":  "apiVersion: v2\nname: app\nversion: 1.0.0\n",
	"values.yaml": "data: {greeting: hello, extra: more}\n",
	"templates/all.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {{ toJson .Values.data }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      containers: [{name: worker, image: WORKER, imagePullPolicy: IfNotPresent}]
`}

// namespaceRestored: a namespace is deleted with all that is in it, a release of Helm's too, and
// brought back, as the shipped policy has it: who may do what and how much there may be is as it
// was, and Helm goes on with its release.
func (s *story) namespaceRestored() {
	ask, chart := s.asker(), s.TempDir()
	for name, text := range chartOf {
		file := filepath.Join(chart, name)
		err := os.MkdirAll(filepath.Dir(file), 0o700)
		if err == nil {
			err = os.WriteFile(file, []byte(strings.ReplaceAll(text, "WORKER", cluster.worker)), 0o600)
		}
		if err != nil {
			s.Fatal(err)
		}
	}
	helm := func(args ...string) {
		s.Helper()
		out, err := program(s.Context(), cluster.helm, append(args, "--namespace", s.namespace)...).CombinedOutput()
		if err != nil {
			s.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	s.weir()
	s.apply(governed)
	helm("install", "app", chart, "--wait", "--timeout", "90s")
	governs := func() {
		s.Helper()
		s.until("who may read reads", s.said("yes", "auth", "can-i", "get", "configmaps", "--as=system:serviceaccount:"+s.namespace+":reader"))
		s.until("the quota counts", s.said("2/1", "get", "resourcequota", "most", "-o", "jsonpath={.status.used.configmaps}/{.status.used.pods}"))
	}
	governs()
	if err := s.confirmed(s.Context()); err != nil {
		s.Fatal(err)
	}
	tree := s.restore(ask)
	s.must("rollout", "status", "deployment/app", "--timeout=90s")
	governs()
	s.settles()
	helm("upgrade", "app", chart, "--set-json", `data={"greeting":"goodbye","extra":null}`, "--wait", "--timeout", "90s")
	if data := s.must("get", "configmap", "app", "-o", "jsonpath={.data}"); data != `{"greeting":"goodbye"}` {
		s.Errorf("after helm upgrade the ConfigMap has %s", data)
	}
	if out := ask("restore", tree, "--plan"); strings.Contains(out, "made again") {
		s.Errorf("after all was restored the plan is\n%s", out)
	}
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
