//go:build stories

package stories

import (
	"context"
	"fmt"
	"time"
)

const (
	shadowMode    = "shadow"
	companionMode = "companion"
	replaceMode   = "replace"
)

// modes: helm upgrade goes from each mode to each, as docs/adoption.md says, while clients make and
// delete owners: none of their requests is refused, what belongs to something alive stays, what was
// deleted ends, what a policy keeps is kept from one mode with policies to the other, and of the
// mode before nothing remains. Replace mode takes a kube-controller-manager whose controllers can be
// switched off: in clusters of others it is left out.
func (s *story) modes() {
	cycle := []string{companionMode, replaceMode, companionMode, shadowMode, replaceMode, shadowMode}
	if cluster.machine == nil {
		cycle = []string{companionMode, shadowMode}
	}
	s.mode(shadowMode)
	s.apply(deployment + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: anchor}\n")
	s.must("rollout", "status", "deployment/web", "--timeout=60s")
	before := containers(s.pods())
	from := shadowMode
	for i, to := range cycle {
		s.turn(i, from, to)
		from = to
	}
	if now := containers(s.pods()); len(before) != 2 || fmt.Sprint(before) != fmt.Sprint(now) {
		s.Errorf("containers before: %v, and after: %v", before, now)
	}
	s.must("delete", "deployment", "web", "--timeout=60s")
	s.until("nothing of the Deployment is left", s.said("", "get", "deployments,replicasets,pods", "-o", "name"))
}

// mode upgrades to one, with what the stories set as far as it goes with it.
func (s *story) mode(to string) {
	s.Helper()
	release.failed = true
	if to == shadowMode { // in which no policy may be on
		s.helm("upgrade", "--install", "weir", chart, "--create-namespace", "--reset-values", "--wait", "--timeout", "3m", "--set", "mode=shadow")
	} else {
		// The shipped protection is not what this is about: it asks for a confirmation of each
		// namespace.
		s.helm(upgrade(chart, "mode="+to, "policies.protection=false")...)
	}
	release.installed, release.failed, release.extra = true, false, []string{"mode=" + to}
}

// turn goes from one mode to another, and prints how long that took.
func (s *story) turn(i int, from, to string) {
	s.Helper()
	began, st := time.Now(), s.stream()
	st.flowing(20)
	owner := s.deleteOwner(fmt.Sprint("owner-", i))
	if to == replaceMode {
		s.builtIn(false)
	}
	s.mode(to)
	if from == replaceMode {
		s.builtIn(true)
	}
	switch {
	case from == shadowMode && i == 0:
		s.keep("Fail")
	case from == shadowMode:
		s.awaitFinalizers()
	}
	st.flowing(20)
	if from == shadowMode || to == shadowMode {
		st.ended()
	} else {
		st.unharmed()
	}
	s.until("what belonged to nothing else is gone", s.said("", "get", "configmap", owner+"-goes", "--ignore-not-found", "-o", "name"))
	s.must("get", "configmap", owner+"-stays")
	s.Logf("%s → %s: %.0f s", from, to, time.Since(began).Seconds())
	s.remains(to)
}

// deleteOwner deletes a ConfigMap of which one depends, and another, which the anchor owns, too.
func (s *story) deleteOwner(name string) string {
	s.Helper()
	s.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n")
	reference := func(of string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, name: %s, uid: %s}", of, s.must("get", "configmap", of, "-o", "jsonpath={.metadata.uid}"))
	}
	s.apply(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %[1]s-goes, ownerReferences: [%[2]s]}\n---\n"+
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %[1]s-stays, ownerReferences: [%[2]s, %[3]s]}\n", name, reference(name), reference("anchor")))
	s.must("delete", "configmap", name)
	return name
}

// builtIn switches the cluster's own collectors off, or on again.
func (s *story) builtIn(on bool) {
	s.Helper()
	if cluster.machine == nil {
		return
	}
	if err := cluster.machine.Collect(context.WithoutCancel(s.Context()), on); err != nil {
		s.Fatal(err)
	}
}

// remains looks for what the mode before has left behind.
func (s *story) remains(in string) {
	s.Helper()
	shadow := in == shadowMode
	for _, kind := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		if out := s.must("get", kind, "weir", "-o", "name", "--ignore-not-found"); shadow != (out == "") {
			s.Errorf("in %s mode there is %q of %s", in, out, kind)
		}
	}
	if shadow {
		if held := s.held(); len(held) > 0 {
			s.Errorf("in shadow mode %d objects still carry Weir's finalizer: %v", len(held), held[:min(5, len(held))])
		}
		s.until("no pod of the mode before is left", s.said("1", "get", "pods", "-n", weirNamespace, "-o", "go-template={{len .items}}"))
	}
	for what, want := range map[string]map[string]string{
		"deployments": {shadowMode: "weir-controller", companionMode: "weir-controller weir-webhook", replaceMode: "weir-controller weir-webhook"},
		"leases":      {shadowMode: "", companionMode: "weir-canary weir-controller", replaceMode: "weir-canary weir-controller"},
		"jobs":        {},
	} {
		s.until("what is there belongs to the mode", s.said(want[in], "get", what, "-n", weirNamespace, "-o", "jsonpath={.items[*].metadata.name}"))
	}
}
