package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

// judgedAlone is by which policies the API server judges a work by itself: Weir is not there.
var judgedAlone = map[string]ofPolicies{
	"DELETE, the API server judges by a policy that says nothing":          {},
	"DELETE, the API server judges by itself":                              {policies: 1},
	"UPDATE of data, the API server judges 16 policies by itself":          {policies: 16, others: `{apiGroups: [""], resources: [configmaps]}`},
	"UPDATE of data, the API server judges 16 policies about another kind": {policies: 16, others: `{apiGroups: [apps], resources: [deployments]}`},
}

// ofPolicies are so many, of which the first is about all ConfigMaps, and the others select none of
// these; none: a ValidatingAdmissionPolicy that says nothing but about dry runs.
type ofPolicies struct {
	policies int
	others   string // what resources those are about
}

const saysNothing = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: bench}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: [DELETE], resources: [configmaps]}]}
  validations: [{expression: "!request.dryRun", reason: Forbidden}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: bench}
spec: {policyName: bench, validationActions: [Deny]}
`

// written is what the API server is to judge by.
func (j ofPolicies) written(ctx context.Context, b *bench, policy string) (string, error) {
	text, about, selector := "", `{apiGroups: [""], resources: [configmaps]}`, ""
	for i := range j.policies {
		if i > 0 {
			policy, about = "protection: {confirmation: Required}", j.others
			selector = fmt.Sprintf(", namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [other-%d]}]}"+
				", objectSelector: {matchExpressions: [{key: tier, operator: In, values: [tier-%d, precious]}]}", i, i)
		}
		text += fmt.Sprintf("---\napiVersion: weir.dev/v1beta1\nkind: DeletionPolicy\nmetadata: {name: bench-%d}\n"+
			"spec: {%s, match: {resources: [%s]%s}}\n", i, policy, about, selector)
	}
	if text == "" {
		return saysNothing, nil
	}
	cmd := exec.CommandContext(ctx, b.weir, "policy", "compile", "/dev/stdin")
	cmd.Stdin = strings.NewReader(text)
	compiled, err := cmd.Output() // exit code 3: something is left out
	if len(compiled) == 0 {
		return "", fmt.Errorf("weir policy compile: %w", err)
	}
	return string(compiled), nil
}

// alone measures the work with what the API server judges by itself.
func (b *bench) alone(ctx context.Context, a admitting, user *rest.Config, p *load.Population) (m guarded, err error) {
	text, err := judgedAlone[a.name].written(ctx, b, a.policy)
	if err != nil {
		return m, err
	}
	kubectl, err := b.kubectl(ctx, text)
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

// kubectl is kubectl for what the text says.
func (b *bench) kubectl(ctx context.Context, text string) (func(verb string) error, error) {
	bins, err := plane.Build(ctx, os.Stderr, plane.Kubectl)
	if err != nil {
		return nil, err
	}
	return func(verb string) error {
		cmd := exec.CommandContext(ctx, bins[plane.Kubectl], "--kubeconfig", b.plane.Kubeconfig, verb, "-f", "-")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w: %s", verb, err, out)
		}
		return nil
	}, nil
}
