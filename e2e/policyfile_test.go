package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// confirmed is a policy file's policy by which objects of a kind want confirmation.
func (w *fixture) confirmed(name, resources, more string) string {
	return strings.NewReplacer("NAME", name, "RESOURCES", resources, "HERE", w.here(), "MORE", more).Replace(`---
apiVersion: weir.dev/v1beta1
kind: DeletionPolicy
metadata: {name: NAME}
spec:
  match:
    resources: [{apiGroups: [""], resources: [RESOURCES]}]
    HERE
    MORE
  protection: {confirmation: Required, inCascades: Ignore}
`)
}

// awaitDeletable waits until a deletion is refused, or is not.
func (w *fixture) awaitDeletable(name string, want bool) {
	w.Helper()
	o := w.of(name)
	w.until(fmt.Sprintf("%s may be deleted: %v", name, want), func(ctx context.Context) (bool, error) {
		err := w.at(o).Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) {
			return false, err
		}
		return (err == nil) == want, nil
	})
}

// Files are policies like any other, as long as no object has their name.
func (w *fixture) policyFiles(dir string) {
	w.make(`
		cm  conf
		sec keys
	`)
	write := func(name, text string) {
		w.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".tmp", []byte(text), 0o644); err != nil {
			w.Fatal(err)
		}
		if err := os.Rename(path+".tmp", path); err != nil {
			w.Fatal(err)
		}
	}
	w.awaitDeletable("conf", true)
	write("a.yaml", w.confirmed("file-a", "configmaps", "")) // added
	w.awaitDeletable("conf", false)
	write("b.yaml", w.confirmed("file-b", "configmaps", `matchConditions: [{name: none, expression: "false"}]`))
	w.awaitWebhooks("confirm.weir.dev Ignore UPDATE of configmaps+configmaps/status", "delete.weir.dev Ignore DELETE of configmaps")
	w.awaitDeletable("keys", true)
	write("b.yaml", w.confirmed("file-b", "secrets", "")) // changed
	w.awaitDeletable("keys", false)

	// Broken in one way or another: said, and the others stay in force.
	write("b.yaml", w.confirmed("file-b", "secrets", `matchConditions: [{name: wrong, expression: "oldObject.metadata.name =="}]`))
	w.awaitDeletable("keys", true)
	w.awaitSaid(w.weir, "something is wrong with a policy", "b.yaml", "Syntax error")
	w.awaitPolicies("broken", 1)
	w.awaitDeletable("conf", false)
	write("c.yaml", "kind: [")
	w.awaitSaid(w.weir, "something is wrong with a policy", "c.yaml")
	w.awaitSaid(w.hook, "something is wrong with a policy", "c.yaml")
	w.awaitPolicies("broken", 2)
	w.awaitDeletable("conf", false)

	// An object of the same name takes the file's place.
	w.policyNamed("DeletionPolicy", "file-a", `
  match:
    resources: [{apiGroups: [apps], resources: [replicasets]}]
    HERE
  protection: {confirmation: Required, inCascades: Ignore}`)
	w.awaitDeletable("conf", true)
	w.awaitSaid(w.weir, "a.yaml", "not in force: an object of the API server has a policy of this kind and name")
	w.unpolicy("DeletionPolicy", "file-a")
	w.awaitDeletable("conf", false)

	for _, name := range []string{"a.yaml", "b.yaml", "c.yaml"} { // removed
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			w.Fatal(err)
		}
	}
	w.awaitDeletable("conf", true)
}

// awaitSaid waits until a line of a process's log has all of these.
func (w *fixture) awaitSaid(p *weir.Process, parts ...string) {
	w.Helper()
	w.until(p.Name+" says "+strings.Join(parts, " … "), func(context.Context) (bool, error) {
		text, err := p.Output()
		for line := range strings.Lines(text) {
			all := true
			for _, part := range parts {
				all = all && strings.Contains(line, part)
			}
			if all {
				return true, nil
			}
		}
		return false, err
	})
}

// awaitPolicies waits until so many policies are in a state.
func (w *fixture) awaitPolicies(state string, n float64) {
	w.Helper()
	w.until("weir counts policies as "+state, func(ctx context.Context) (bool, error) {
		m, err := w.weir.Metrics(ctx)
		return m.Sum("weir_policies", "state", state) == n, err
	})
}

// A policy that cannot be compiled, or judged, does what its failurePolicy says, and
// the others work.
func (w *fixture) brokenPolicies() {
	w.make(`
		cm  conf
		sec keys
		rs  web
		rc  old
	`)
	broken := func(name, group, resources, condition, failurePolicy string) {
		w.Helper()
		w.policyNamed("DeletionPolicy", name, strings.NewReplacer("GROUP", group, "RESOURCES", resources, "CONDITION", condition, "FAILURE", failurePolicy).Replace(`
  match:
    resources: [{apiGroups: [GROUP], resources: [RESOURCES]}]
    HERE
    matchConditions: [{name: cond, expression: "CONDITION"}]
  protection: {confirmation: Required, inCascades: Ignore}
  failurePolicy: FAILURE`))
	}
	for condition, says := range map[string]string{"oldObject.metadata.name ==": "Syntax error"} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "weir.dev/v1beta1", "kind": "DeletionPolicy", "metadata": map[string]any{"name": "refused"},
			"spec": map[string]any{
				"match": map[string]any{
					"resources":       []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}}},
					"matchConditions": []any{map[string]any{"name": "cond", "expression": condition}},
				},
				"protection": map[string]any{"confirmation": "Required"},
			},
		}}
		_, err := w.dynamic.Resource(policyResources["DeletionPolicy"]).Create(w.Context(), o, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `"policies.weir.dev" denied the request: the policy cannot work: spec.match.matchConditions[0].expression: `) || !strings.Contains(err.Error(), says) {
			w.Errorf("%s: %v", condition, err)
		}
	}
	back := w.killed(w.hook) // then it is not found
	broken("wrong", `""`, "configmaps", "oldObject.metadata.name ==", "Ignore")
	broken("typo", "example.com", "gizmoz", "true", "Ignore")
	back()
	if c := w.awaitCondition("DeletionPolicy", "typo", "Resolved", metav1.ConditionFalse); c.Reason != "NotServed" || !strings.Contains(c.Message, "gizmoz.example.com") {
		w.Errorf("condition %+v", c)
	}
	c := w.awaitCondition("DeletionPolicy", "wrong", "Ready", metav1.ConditionFalse)
	if c.Reason != "Invalid" || !strings.Contains(c.Message, "matchConditions[0].expression") || !strings.Contains(c.Message, "Syntax error") {
		w.Errorf("condition %+v", c)
	}
	broken("fails-closed", `""`, "secrets", "oldObject.data.missing == 'x'", "Fail")
	broken("fails-open", "apps", "replicasets", "oldObject.spec.missing == 'x'", "Ignore")
	broken("works", `""`, "replicationcontrollers", "true", "Ignore")
	w.awaitDeletable("old", false)
	w.awaitDeletable("keys", false)
	w.mustRefuse([]string{`"fail.delete.weir.dev" denied the request`, "cannot be judged, and the policy's failurePolicy is Fail",
		`DeletionPolicy "fails-closed"`, `condition "cond": no such key`, "Fix the policy, or set its failurePolicy to Ignore."},
		"delete", "secret", "keys")
	w.alive("keys")
	w.mustCall("a delete that cannot be judged", 1, func() { w.mustKubectl("delete", "rs", "web", "--wait=false") })
	w.mustKubectl("delete", "cm", "conf")
	w.awaitGone("web", "conf")
	w.alive("old")
}

// A webhook that does not know the policies is not ready, and answers no request.
func (w *fixture) hookWithoutPolicies() {
	const user = "weir-webhook-newcomer"
	role, err := w.typed.RbacV1().ClusterRoles().Create(w.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"*"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	kubeconfig, err := restricted(w.Context(), w.plane, user, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name})
	if err != nil {
		w.Fatal(err)
	}
	port, err := plane.FreePort()
	if err != nil {
		w.Fatal(err)
	}
	p, err := weir.Launch(context.WithoutCancel(w.Context()), hookOptions(w.plane, kubeconfig, "newcomer", "https://localhost", port))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(p.Kill)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	token := w.webhookToken()
	var answer string
	w.until("the webhook answers that it is not ready", func(ctx context.Context) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("https://127.0.0.1:%d/%s/delete", port, token), bytes.NewReader([]byte("{}")))
		if err != nil {
			return false, err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		answer = string(body)
		return resp.StatusCode == http.StatusServiceUnavailable, err
	})
	if !strings.Contains(answer, "weir is starting: waiting for the first list of ") {
		w.Errorf("it answers %q", answer)
	}
	w.awaitSaid(p, "cannot follow, will try again", "deletionpolicies.weir.dev", "forbidden")
	if err := p.Ready(w.Context()); err == nil {
		w.Error("it is ready without its policies")
	} else if !strings.Contains(err.Error(), "policies") {
		w.Errorf("readiness does not say what it waits for: %v", err)
	}
	if _, err := identity(w.Context(), w.plane, user); err != nil { // may do everything from now on
		w.Fatal(err)
	}
	if err := p.AwaitReady(w.Context()); err != nil {
		w.Error(err)
	}
}
