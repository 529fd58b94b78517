package insight

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// TestWhetherTheComponentRuns: what workloads tell about who is to take a finalizer
// off, and what cannot be determined.
func TestWhetherTheComponentRuns(t *testing.T) {
	workload := func(text string) []unstructured.Unstructured {
		var u unstructured.Unstructured
		data, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = json.Unmarshal(data, &u.Object) // whole numbers as the API server's answers have them
		}
		if err != nil {
			t.Fatal(err)
		}
		return []unstructured.Unstructured{u}
	}
	const deployment = `{kind: Deployment, metadata: {namespace: ops, name: NAME}, spec: {replicas: 2, template: {spec: {containers: [CONTAINER]}}}, status: {readyReplicas: READY}}`
	of := func(name, container, ready string) []unstructured.Unstructured {
		return workload(strings.NewReplacer("NAME", name, "CONTAINER", container, "READY", ready).Replace(deployment))
	}
	const claim = "kubernetes.io/pvc-protection"
	for name, c := range map[string]struct {
		components         *Components
		finalizer, manager string
		want               string
	}{
		"nothing was read":  {nil, "example.com/hold", "backup", ""},
		"named like it":     {&Components{Workloads: of("backup", "{}", "2"), Complete: true}, "example.com/hold", "backup", `the Deployment ops/backup, which runs something that is named "backup", has 2 of 2 pods ready`},
		"its container":     {&Components{Workloads: of("x", "{name: backup}", "2")}, "example.com/hold", "backup", "has 2 of 2 pods ready"},
		"its image":         {&Components{Workloads: of("x", "{image: 'reg.example.com:5000/team/backup:v1@sha256:00'}", "1")}, "example.com/hold", "backup", "has 1 of 2 pods ready"},
		"its program":       {&Components{Workloads: of("x", "{command: [/bin/backup, --all]}", "0")}, "example.com/hold", "backup", "has 0 of 2 pods ready: no component may be running that removes it"},
		"a daemon":          {&Components{Workloads: workload(`{kind: DaemonSet, metadata: {namespace: ops, name: backup}, status: {desiredNumberScheduled: 3, numberReady: 0}}`)}, "example.com/hold", "backup", "the DaemonSet ops/backup, which runs something that is named \"backup\", has 0 of 3 pods ready: no component"},
		"it is gone":        {&Components{Workloads: of("other", "{}", "2"), Complete: true}, "example.com/hold", "backup", `no Deployment, StatefulSet or DaemonSet in the cluster runs something that is named "backup": the component may be gone`},
		"not all were read": {&Components{Workloads: of("other", "{}", "2")}, "example.com/hold", "backup", ""},
		"a person's tool":   {&Components{Complete: true}, "example.com/hold", "kubectl-edit", ""},
		"a name of many":    {&Components{Complete: true}, "example.com/hold", "manager", ""},
		"by its own name":   {&Components{Workloads: of("keda-operator", "{}", "0"), Complete: true}, "finalizer.keda.sh", "kubectl-edit", `the Deployment ops/keda-operator, which runs something that is named "keda-operator", has 0 of 2 pods ready`},
		"no right to look":  {&Components{}, claim, "kube-apiserver", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(c.components.evidence(c.finalizer, c.manager), "; ")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Contains(got, ";") {
				t.Errorf("%q, want %q", got, c.want)
			}
			if strings.Contains(got, "nobody may be there") != strings.Contains(c.want, "nobody") {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
