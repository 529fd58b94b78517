package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

// A judging is plain requests that policies judge.
type judging struct {
	name string
	// spec is that of a DeletionPolicy about all ConfigMaps; kind: of another kind.
	kind, spec string
	// labels are those of the ConfigMaps that the policy is about, if it is not about all.
	labels map[string]string
	// alone: the API server judges by itself, by so many policies, of which all but the first are
	// about others; none: by one that says nothing. Weir is not there.
	alone  bool
	about  int
	others string // resources that those others are about
	// beside: the API server asks Weir's webhook, and an empty one is measured, too.
	beside bool
	act    func(ctx context.Context, who clients, p *load.Population) error
}

const (
	aboutConfigMaps  = `{apiGroups: [""], resources: [configmaps]}`
	aboutDeployments = `{apiGroups: [apps], resources: [deployments]}`
	onlyBackground   = `propagation: {allowed: [Background]}`
)

var enforced = map[string]string{"enforced": "yes"}

var judgings = []judging{
	{name: "DELETE, a policy that changes no propagation", spec: `propagation: {default: Background}`, beside: true, act: deleteAll},
	{name: "DELETE, dependents are counted", beside: true, act: deleteAll,
		spec: `propagation: {default: Background}, protection: {maxDependents: 1000000}`},
	{name: "DELETE by a collector, which a policy judges", beside: true, act: collectAll,
		spec: `protection: {maxDependents: 1000000, inCascades: Refuse}`},
	{name: "DELETE by a collector, a policy protects others", act: collectAll,
		spec: `protection: {confirmation: Required}`, labels: map[string]string{"precious": "yes"}},
	{name: "UPDATE of data, owner references are judged", act: touch,
		kind: "OwnerReferencePolicy", spec: `blockOwnerDeletion: RequirePermission, changes: RequirePermission`},
	{name: "UPDATE of data, a policy that adds the finalizer to others", act: touch,
		spec: `propagation: {default: Foreground}`, labels: map[string]string{"stamped": "yes"}},
	{name: "DELETE, the API server judges by a policy that says nothing", alone: true, act: deleteAll},
	{name: "DELETE, the API server judges by itself", alone: true, spec: onlyBackground, about: 1, act: deleteAll},
	{name: "UPDATE of data, the API server judges 16 policies by itself", act: touch,
		alone: true, spec: onlyBackground, about: 16, others: aboutConfigMaps},
	{name: "UPDATE of data, the API server judges 16 policies about another kind", act: touch,
		alone: true, spec: onlyBackground, about: 16, others: aboutDeployments},
	{name: "CREATE, the finalizer is added", spec: `propagation: {default: Foreground}`, labels: enforced, beside: true, act: makeMore},
}

// deleteAll is what the floor of a background cascade is.
func deleteAll(ctx context.Context, who clients, p *load.Population) error {
	return floor(ctx, who, p, background)
}

// garbageCollector is who the built-in collector is.
const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// collectAll is deleteAll by the built-in garbage collector.
func collectAll(ctx context.Context, who clients, p *load.Population) error {
	cfg := rest.CopyConfig(who.Config)
	cfg.Impersonate.UserName = garbageCollector
	collector, err := as(cfg, "", nil)
	if err != nil {
		return err
	}
	return deleteAll(ctx, collector, p)
}

// makeMore makes as many ConfigMaps more as there are dependents.
func makeMore(ctx context.Context, who clients, p *load.Population) error {
	return load.Each(ctx, len(p.Dependents), func(ctx context.Context, i int) error {
		_, err := load.Create(ctx, who.dynamic, load.ConfigMap, p.Namespace, fmt.Sprintf("more-%d", i), enforced)
		return err
	})
}

// judged is what was measured of one guard.
type judged struct {
	rate  float64 // objects a second
	asked float64 // reviews for an object
	cpu   float64 // of the guard's process for an object, in microseconds
}

// mean is that of two measurements, of which the first may be none.
func (g judged) mean(h judged) judged {
	if g == (judged{}) {
		return h
	}
	return judged{rate: (g.rate + h.rate) / 2, asked: (g.asked + h.asked) / 2, cpu: (g.cpu + h.cpu) / 2}
}

// compareJudging measures without a guard, with weir's webhook, the empty one, the empty one,
// weir's, and without, or the other way around: etcd and the API server get slower with every
// object that there was, which would favour whoever is always first.
func (b *bench) compareJudging(ctx context.Context, j judging) error {
	var asked rules
	type start func(context.Context, *load.Population) (*guard, error)
	var none, weir, empty judged
	for round := range b.inTime(b.rounds) {
		none, weir, empty = judged{}, judged{}, judged{}
		type step struct {
			to    *judged
			start start
		}
		without := step{&none, func(context.Context, *load.Population) (*guard, error) { return b.noGuard(), nil }}
		with := step{&weir, func(ctx context.Context, p *load.Population) (g *guard, err error) {
			if j.alone {
				return b.startAlone(ctx, j, p)
			}
			g, asked, err = b.startWeir(ctx, j, p)
			return g, err
		}}
		steps := []step{with, with}
		if j.beside {
			unseen := step{&empty, func(ctx context.Context, p *load.Population) (*guard, error) {
				g, err := b.startEmpty(ctx, asked)
				if err == nil {
					err = b.awaitAsked(ctx, g, p, j.labels)
				}
				return g, err
			}}
			steps = []step{with, unseen, unseen, with}
			if round%2 == 1 {
				steps = []step{unseen, with, with, unseen}
			}
		}
		for _, s := range slices.Concat([]step{without}, steps, []step{without}) {
			m, err := b.judgedBy(ctx, j, s.start)
			if err != nil {
				return err
			}
			*s.to = s.to.mean(m)
		}
		b.noteJudged(j, none, weir, empty)
	}
	return nil
}

func (b *bench) noteJudged(j judging, none, weir, empty judged) {
	b.note("nobody", figure{"objects/s", none.rate})
	switch ofNone := weir.rate / none.rate; {
	case j.alone:
		b.note("the API server", figure{"objects/s", weir.rate}, figure{"of nobody", ofNone}, figure{"CPU, of nobody", weir.cpu / none.cpu})
	case j.beside:
		b.note("weir", figure{"objects/s", weir.rate}, figure{"of nobody", ofNone}, figure{"of an empty webhook", weir.rate / empty.rate},
			figure{"CPU each, µs", weir.cpu}, figure{"of an empty webhook", empty.cpu}, figure{"calls each", weir.asked})
	default:
		b.note("weir", figure{"objects/s", weir.rate}, figure{"of nobody", ofNone},
			figure{"CPU each, µs", weir.cpu}, figure{"calls each", weir.asked})
	}
}

// judgedBy measures the work with a guard, on objects that were made before it was there.
func (b *bench) judgedBy(
	ctx context.Context, j judging, start func(context.Context, *load.Population) (*guard, error),
) (m judged, err error) {
	p, err := load.Populate(ctx, b.Config, load.Flat(b.n))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, b.clean(ctx, p)) }() // once no one judges any more
	g, err := start(ctx, p)
	if g != nil {
		defer func() { err = errors.Join(err, g.stop(ctx)) }()
	}
	if err == nil {
		err = pause(ctx, digest)
	}
	if err != nil {
		return m, err
	}
	spent := func() (asked, cpu float64) {
		asked, askedErr := g.asked(ctx)
		cpu, cpuErr := cpuOf(g.Child)
		err = errors.Join(err, askedErr, cpuErr)
		return asked, cpu
	}
	n := float64(b.n)
	asked, cpu := spent()
	began := time.Now()
	if err == nil {
		err = j.act(ctx, b.user, p)
	}
	m.rate = n / time.Since(began).Seconds()
	askedThen, cpuThen := spent()
	m.asked, m.cpu = (askedThen-asked)/n, (cpuThen-cpu)/n*1e6
	return m, err
}

// noGuard is the API server, which judges nothing.
func (b *bench) noGuard() *guard {
	return &guard{Child: b.Child(plane.APIServer), stop: func(context.Context) error { return nil },
		asked: func(context.Context) (float64, error) { return 0, nil }}
}

// startWeir runs weir's webhook. Its controller runs only until it has told the API server: what is
// measured is what a review costs.
func (b *bench) startWeir(ctx context.Context, j judging, p *load.Population) (g *guard, asked rules, err error) {
	kind, selector := j.kind, ""
	if kind == "" {
		kind = "DeletionPolicy"
	}
	for k, v := range j.labels {
		selector = fmt.Sprintf(`, objectSelector: {matchLabels: {%s: "%s"}}`, k, v)
	}
	text := policy("bench", kind, fmt.Sprintf("%s, match: {resources: [%s]%s}", j.spec, aboutConfigMaps, selector))
	if g, err = b.startPair(ctx, text, "companion"); err != nil {
		return nil, asked, err
	}
	err = g.controller.Stop(plane.DefaultGrace)
	if err == nil {
		asked, err = b.installed(ctx)
	}
	if err == nil {
		err = b.awaitAsked(ctx, g, p, j.labels)
	}
	return g, asked, err
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

// compiled is what the API server is to judge by.
func (b *bench) compiled(ctx context.Context, j judging) (string, error) {
	if j.about == 0 {
		return saysNothing, nil
	}
	text := policy("bench-0", "DeletionPolicy", fmt.Sprintf("%s, match: {resources: [%s]}", j.spec, aboutConfigMaps))
	for i := 1; i < j.about; i++ {
		text += policy(fmt.Sprintf("bench-%d", i), "DeletionPolicy", fmt.Sprintf("protection: {confirmation: Required}, match: {resources: [%s]"+
			", namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [other-%d]}]}"+
			", objectSelector: {matchExpressions: [{key: tier, operator: In, values: [tier-%d, precious]}]}}", j.others, i, i))
	}
	cmd := exec.CommandContext(ctx, b.weir, "policy", "compile", "/dev/stdin")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output() // exit code 3: something is left out
	if len(out) == 0 {
		return "", fmt.Errorf("weir policy compile: %w", err)
	}
	return string(out), nil
}

// startAlone has the API server judge by itself, and returns when it does.
func (b *bench) startAlone(ctx context.Context, j judging, p *load.Population) (*guard, error) {
	text, err := b.compiled(ctx, j)
	if err != nil {
		return nil, err
	}
	bins, err := plane.Build(ctx, os.Stderr, plane.Kubectl)
	if err != nil {
		return nil, err
	}
	kubectl := func(ctx context.Context, verb string) error {
		cmd := exec.CommandContext(ctx, bins[plane.Kubectl], "--kubeconfig", b.Kubeconfig, verb, "-f", "-")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w: %s", verb, err, out)
		}
		return nil
	}
	if err := kubectl(ctx, "apply"); err != nil {
		return nil, err
	}
	g := b.noGuard()
	g.stop = func(ctx context.Context) error { return kubectl(ctx, "delete") }
	trial := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, PropagationPolicy: new(orphan)}
	return g, plane.Poll(ctx, time.Minute, func(ctx context.Context) (bool, error) {
		err := b.user.of(p).Delete(ctx, p.Owner.Name, trial)
		if apierrors.IsForbidden(err) {
			return true, nil
		}
		return false, err
	})
}
