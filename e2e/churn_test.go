//go:build full

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

var (
	churnRounds = flag.Int("churn.rounds", 2, "how many namespaces of applications come, are rolled out, and go")
	churnFor    = flag.Duration("churn.for", 0, "for how long they go on doing so before a weir in shadow mode; at least the rounds are done")
)

// shadowLate is what users have.
const shadowLate = 2 * time.Minute

// churned is how many applications one round has.
const churned = 5

// TestChurnIsNotHeld: under the limits that users have, nothing is held of what a cluster's own
// life leaves behind, with all of Kubernetes' controllers at work and a weir that is killed in the
// middle of it. It prints how much of what was collected rests on inference, which
// docs/operating.md tells.
func TestChurnIsNotHeld(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.WithoutCollectors, Scheduler: true, Kwok: true,
		ControllerManagerFlags: []string{"--node-monitor-grace-period=24h"}}) // the node has no kubelet to say that it is there
	if err := installCRDs(t.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	w.startWeir()
	var inferred, held float64
	count := func() {
		m, err := w.weir.Metrics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inferred += m.Sum("weir_inferred_deletes_total", "answer", "go")
		held += m.Sum("weir_inferred_deletes_total", "answer", "held")
	}
	for round := range *churnRounds {
		await := w.churn(fmt.Sprintf("churn-%d", round), func() {
			if round%3 == 1 {
				count()
				w.weir.Kill()
			}
		})
		if round%3 == 1 {
			if err := w.weir.Restart(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		await()
	}
	count()
	deletes := 0
	for _, r := range w.auditOf(weirUser) {
		if r.Verb == "delete" && r.Status.Code == 200 {
			deletes++
		}
	}
	t.Logf("%d namespaces of applications came and went: weir deleted %d objects, %.0f of them by inference; %.0f were held", *churnRounds, deletes, inferred, held)
	if held > 0 {
		t.Errorf("%.0f objects were held", held)
	}
	if deletes == 0 {
		t.Error("nothing was collected")
	}
}

// TestShadowFindsNoDifferenceInChurn with all of Kubernetes' controllers at work, and its own
// collectors.
func TestShadowFindsNoDifferenceInChurn(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.All, Scheduler: true, Kwok: true,
		ControllerManagerFlags: []string{"--node-monitor-grace-period=24h"}})
	kubeconfig, err := w.reader()
	if err != nil {
		t.Fatal(err)
	}
	s, err := weir.StartShadow(context.WithoutCancel(t.Context()), weir.Options{Binary: shared.binary, Dir: w.plane.Dir, Kubeconfig: kubeconfig}, shadowLate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	began, rounds := time.Now(), 0
	for ; rounds < *churnRounds || time.Since(began) < *churnFor; rounds++ {
		w.churn(fmt.Sprintf("churn-%d", rounds), func() {})()
	}
	found, err := s.End(t.Context())
	t.Logf("%d namespaces of applications came and went in %s:\n%s", rounds, time.Since(began).Round(time.Second), found)
	if err != nil {
		t.Error(err)
	}
	if !strings.Contains(found, "delete: ") {
		t.Error("nothing was compared")
	}
}

// application is a Deployment, a Service and a Job, which are named NAME.
const application = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 2
  revisionHistoryLimit: 0
  selector: {matchLabels: {app: NAME}}
  template: {metadata: {labels: {app: NAME}}, spec: {containers: [{name: app, image: example.com/app:1}]}}
---
apiVersion: v1
kind: Service
metadata: {name: NAME}
spec: {selector: {app: NAME}, ports: [{port: 80}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: NAME}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: example.com/app:1}]}}}
`

// churn makes a namespace of applications, rolls them out, and deletes the jobs, and all deployments and
// services but one; that goes with the namespace, whose deletion begins. It returns what waits for its
// end.
func (w *fixture) churn(ns string, before func()) (await func()) {
	w.Helper()
	text := ""
	for i := range churned {
		text += strings.ReplaceAll(application, "NAME", fmt.Sprint("app-", i))
	}
	rolledOut := func() {
		for i := range churned {
			w.mustKubectl("rollout", "status", fmt.Sprint("deployment/app-", i), "-n", ns, "--timeout=240s")
		}
	}
	w.mustKubectl("create", "namespace", ns)
	w.applyText(text, "-n", ns)
	rolledOut()
	w.mustKubectl("set", "image", "deployment", "--all", "app=example.com/app:2", "-n", ns)
	rolledOut()
	w.mustKubectl("delete", "jobs", "--all", "-n", ns, "--wait=false")
	for i := 1; i < churned; i++ {
		w.mustKubectl("delete", fmt.Sprint("deployment/app-", i), fmt.Sprint("service/app-", i), "-n", ns, "--wait=false")
	}
	before()
	w.mustKubectl("delete", "namespace", ns, "--wait=false")
	return func() { w.mustKubectl("wait", "--for=delete", "namespace/"+ns, "--timeout=240s") }
}

func (w *fixture) applyText(text string, flags ...string) {
	w.Helper()
	file := w.TempDir() + "/objects.yaml"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	w.mustKubectl(append([]string{"apply", "-f", file}, flags...)...)
}
