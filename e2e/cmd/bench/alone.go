package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

// judgedAlone is by how many policies the API server judges a work by itself: Weir is not there.
var judgedAlone = map[string]int{
	"DELETE, the API server judges by itself":                     1,
	"UPDATE of data, the API server judges 16 policies by itself": 16,
	"UPDATE of data, the API server judges 64 policies by itself": 64,
}

// alone measures the work with what weir policy compile makes of the policies: the first is about
// all ConfigMaps, and the others select none of these.
func (b *bench) alone(ctx context.Context, a admitting, user *rest.Config, p *load.Population) (m guarded, err error) {
	text := ""
	for i := range judgedAlone[a.name] {
		policy, selector := a.policy, ""
		if i > 0 {
			policy = "protection: {confirmation: Required}"
			selector = fmt.Sprintf(", namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [other-%d]}]}"+
				", objectSelector: {matchExpressions: [{key: tier, operator: In, values: [tier-%d, precious]}]}", i, i)
		}
		text += fmt.Sprintf("---\napiVersion: weir.dev/v1beta1\nkind: DeletionPolicy\nmetadata: {name: bench-%d}\n"+
			"spec: {%s, match: {resources: [{apiGroups: [\"\"], resources: [configmaps]}]%s}}\n", i, policy, selector)
	}
	kubectl, err := b.compile(ctx, text)
	if err != nil {
		return m, err
	}
	if err := kubectl("apply"); err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, kubectl("delete")) }()
	client, err := kubernetes.NewForConfig(user)
	if err != nil {
		return m, err
	}
	orphaning := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, PropagationPolicy: new(metav1.DeletePropagationOrphan)}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := client.CoreV1().ConfigMaps(p.Namespace).Delete(ctx, p.Owner.Name, orphaning)
		if apierrors.IsForbidden(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return m, fmt.Errorf("wait until the API server judges: %w", err)
	}
	return b.served(ctx, a, user, p)
}

// served measures the work, and what the API server took for it.
func (b *bench) served(ctx context.Context, a admitting, user *rest.Config, p *load.Population) (m guarded, err error) {
	before, err := load.CPU(b.plane.Child(plane.APIServer))
	if err != nil {
		return m, err
	}
	if m.rate, err = b.rateOf(ctx, a, user, p); err != nil {
		return m, err
	}
	after, err := load.CPU(b.plane.Child(plane.APIServer))
	m.cpu = (after - before) / float64(b.n) * 1e6
	return m, err
}

// cpuOfWithout is what the API server takes for an object, of without.
func (a admitted) cpuOfWithout() float64 { return 2 * a.weir.cpu / (a.before.cpu + a.after.cpu) }

// compile is kubectl for what policies are compiled to.
func (b *bench) compile(ctx context.Context, policies string) (kubectl func(verb string) error, err error) {
	dir, err := os.MkdirTemp(b.plane.Dir, "compiled-")
	if err != nil {
		return nil, err
	}
	from, to := filepath.Join(dir, "policies.yaml"), filepath.Join(dir, "compiled.yaml")
	if err := os.WriteFile(from, []byte(policies), 0o644); err != nil {
		return nil, err
	}
	compiled, err := exec.CommandContext(ctx, b.weir, "policy", "compile", from).Output() // exit code 3: something is left out
	if len(compiled) == 0 {
		return nil, fmt.Errorf("weir policy compile: %w", err)
	}
	bins, err := plane.Build(ctx, os.Stderr, plane.Kubectl)
	if err != nil {
		return nil, err
	}
	return func(verb string) error {
		out, err := exec.CommandContext(ctx, bins[plane.Kubectl], "--kubeconfig", b.plane.Kubeconfig, verb, "-f", to).CombinedOutput()
		if err != nil {
			return fmt.Errorf("kubectl %s: %w: %s", verb, err, out)
		}
		return nil
	}, os.WriteFile(to, compiled, 0o644)
}
