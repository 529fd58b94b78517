//go:build full

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/e2e/plane"
)

// webhookConfigurations makes both of Weir's, for nothing in particular.
func (w *fixture) webhookConfigurations() {
	w.Helper()
	admission, weirs := w.typed.AdmissionregistrationV1(), metav1.ObjectMeta{Name: "weir"}
	if _, err := admission.MutatingWebhookConfigurations().Create(w.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: weirs}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	if _, err := admission.ValidatingWebhookConfigurations().Create(w.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: weirs}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// webhooksLeft counts the configurations that are called weir.
func (w *fixture) webhooksLeft() (n int) {
	w.Helper()
	admission, named := w.typed.AdmissionregistrationV1(), metav1.ListOptions{FieldSelector: "metadata.name=weir"}
	mutating, err := admission.MutatingWebhookConfigurations().List(w.Context(), named)
	if err != nil {
		w.Fatal(err)
	}
	validating, err := admission.ValidatingWebhookConfigurations().List(w.Context(), named)
	if err != nil {
		w.Fatal(err)
	}
	return len(mutating.Items) + len(validating.Items)
}

// TestReleaseTakesTheFinalizerOffEverything: killed on the way, it is run again,
// and finds the rest.
func TestReleaseTakesTheFinalizerOffEverything(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	w.define(w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1"))
	var all, held, ending []string // all have Weir's finalizer, held another one too, ending no other and are being deleted
	for kind, n := range map[string]int{"cm": 550, "sec": 50, "widget": 50, "cr": 50, "rc": 50} {
		for i, name := range numbered("of-"+kind, n) {
			finalizers := finalizer
			if i%3 == 0 {
				finalizers = "example.com/hold, " + finalizer
				held = append(held, name)
			}
			w.make(fmt.Sprintf("%s %s finalizers=(%s)", kind, name, finalizers))
			all = append(all, name)
			if i%5 == 0 {
				w.delete(name, background)
				if i%3 != 0 {
					ending = append(ending, name)
				}
			}
		}
	}
	w.make("cm armed\ncm alone finalizers=(example.com/hold)")
	w.patch("armed", `{"metadata":{"annotations":{"weir.dev/armed-at":"2026-01-01T00:00:00Z","example.com/a":"b"}}}`)
	w.webhookConfigurations()

	t.Log("a dry run")
	dry, err := identity(t.Context(), w.plane, "dry")
	if err != nil {
		t.Fatal(err)
	}
	before := w.versions(append(all, "armed", "alone"))
	r := w.release(dry, "--dry-run")
	if r.err != "" {
		t.Fatalf("a dry run: %s\n%s", r.err, r.log)
	}
	if diff := cmp.Diff(before, w.versions(append(all, "armed", "alone"))); diff != "" {
		t.Errorf("a dry run wrote (-before +after):\n%s", diff)
	}
	if n := w.webhooksLeft(); n != 2 {
		t.Errorf("after a dry run there are %d webhook configurations", n)
	}
	lines := map[string]bool{}
	for line := range strings.Lines(r.out) {
		lines[strings.TrimSpace(line)] = true
	}
	if want := len(all) + 1 + 2; len(lines) != want {
		t.Errorf("a dry run names %d things, want %d", len(lines), want)
	}
	for _, line := range []string{"configmaps " + w.namespace + "/armed", "clusterroles.rbac.authorization.k8s.io of-cr-1",
		"widgets." + w.namespace + ".example.com " + w.namespace + "/of-widget-0 (terminating)", "mutatingwebhookconfigurations.admissionregistration.k8s.io weir"} {
		if !lines[line] {
			t.Errorf("a dry run does not name %s", line)
		}
	}

	t.Log("killed on the way")
	kubeconfig, err := identity(t.Context(), w.plane, weirUser)
	if err != nil {
		t.Fatal(err)
	}
	reached, goOn := make(chan struct{}), make(chan struct{})
	asked, once := 0, sync.Once{}
	h := w.newHook(false, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if asked++; asked > 100 {
			once.Do(func() { close(reached) })
			<-goOn
		}
		return nil
	})
	p := plane.Command("release", shared.binary, filepath.Join(w.plane.Dir, "release.log"), "release", "--test-arming-window=0s", "--kubeconfig", kubeconfig)
	if err := p.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	select {
	case <-reached:
	case <-time.After(patience):
		t.Errorf("it did not come far: %s", p.Tail(20))
	}
	w.until("it tells how far it is", func(context.Context) (bool, error) {
		return strings.Contains(p.Tail(20), " seen, "), nil
	})
	p.Kill()
	close(goOn)
	h.allow()
	left := len(w.withFinalizer(all))
	if left == 0 || left == len(all) {
		t.Errorf("%d of %d objects are left when it is killed on the way", left, len(all))
	}
	if n := w.webhooksLeft(); n != 0 {
		t.Errorf("%d webhook configurations are left after the first thing it does", n)
	}

	t.Logf("%d objects are left: again", left)
	if r := w.release(kubeconfig); r.err != "" || !strings.Contains(r.log, "\nreleased ") && !strings.HasPrefix(r.log, "released ") {
		t.Fatalf("run again: %s\n%s", r.err, r.log)
	}
	if left := w.withFinalizer(append(all, "armed")); len(left) > 0 {
		t.Errorf("still with the finalizer: %v", left)
	}
	if a := w.get("armed").GetAnnotations(); !cmp.Equal(a, map[string]string{"example.com/a": "b"}) {
		t.Errorf("the annotations of armed are %v", a)
	}
	w.awaitGone(ending...)
	for _, name := range held {
		if o := w.get(name); o == nil || !cmp.Equal(o.GetFinalizers(), []string{"example.com/hold"}) {
			t.Errorf("the other finalizer of %s was touched", name)
		}
	}
	if r := w.release(kubeconfig); r.err != "" || !strings.Contains(r.log, "released 0 of ") {
		t.Errorf("a third time: %s\n%s", r.err, r.log)
	}
	w.awaitRequests(weirUser, "patch", 1)
	for verb := range w.requests("dry") {
		if verb != "get" && verb != "list" {
			t.Errorf("a dry run made a %s", verb)
		}
	}
}

// TestReleaseWaitsForTheControllerToBeStopped: it would put back what is taken off.
func TestReleaseWaitsForTheControllerToBeStopped(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	kubeconfig, err := identity(t.Context(), w.plane, weirUser)
	if err != nil {
		t.Fatal(err)
	}
	w.webhookConfigurations()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "weir-controller"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("host_1"), LeaseDurationSeconds: new(int32(3600)), RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}
	leases := w.typed.CoordinationV1().Leases(w.namespace)
	if lease, err = leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stays := func(name string, flags ...string) {
		t.Helper()
		w.make("cm " + name + " finalizers=(" + finalizer + ")")
		r := w.release(kubeconfig, flags...)
		for _, part := range []string{w.namespace + "/weir-controller", "host_1", "--force"} {
			if r.err == "" || !strings.Contains(r.log, part) {
				t.Errorf("%s: %q does not say %q:\n%s", name, r.err, part, r.log)
			}
		}
		if len(w.withFinalizer([]string{name})) == 0 || w.webhooksLeft() != 2 {
			t.Errorf("%s: it refused, and released all the same", name)
		}
		w.unfinalize(name)
	}
	goes := func(name string, flags ...string) {
		t.Helper()
		w.make("cm " + name + " finalizers=(" + finalizer + ")")
		if r := w.release(kubeconfig, flags...); r.err != "" {
			t.Errorf("%s: %s\n%s", name, r.err, r.log)
		}
		if len(w.withFinalizer([]string{name})) > 0 || w.webhooksLeft() != 0 {
			t.Errorf("%s: nothing was released", name)
		}
	}
	stays("held")
	stays("held-here", "--leader-elect-namespace", w.namespace)
	goes("held-elsewhere", "--leader-elect-namespace", "kube-system")
	goes("forced", "--force")
	lease.Spec.RenewTime.Time = time.Now().Add(-2 * time.Hour)
	if lease, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err) // who forces it leaves the Lease to the controller
	}
	goes("run-out")
	lease.ResourceVersion, lease.UID = "", "" // the Lease went, too
	lease.Spec.RenewTime.Time, lease.Spec.HolderIdentity = time.Now(), new("")
	if _, err = leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	goes("given-back")
}
