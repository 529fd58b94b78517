package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// guardName is that of the webhook configurations, of which there is one of a kind.
const guardName = "weir"

// A guard is who judges requests: weir's webhook, or nobody but the API server.
type guard struct {
	*plane.Child // whose CPU it takes
	// asked is how many reviews it has answered.
	asked      func(context.Context) (float64, error)
	stop       func(context.Context) error
	controller *weir.Process // weir's
}

// policy is the manifest of one.
func policy(name, kind, spec string) string {
	return fmt.Sprintf("---\napiVersion: weir.dev/v1beta1\nkind: %s\nmetadata: {name: %s}\nspec: {%s}\n", kind, name, spec)
}

// startPair runs weir's webhook and its controller in a mode, with policies.
func (b *bench) startPair(ctx context.Context, policies, mode string) (_ *guard, err error) {
	dir, err := os.MkdirTemp(b.Dir, "policies-")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "policies.yaml"), []byte(policies), 0o644)
	}
	if err != nil {
		return nil, err
	}
	port, err := plane.FreePort()
	if err != nil {
		return nil, err
	}
	both := []string{"--policy-dir", dir, "--webhook-url", fmt.Sprintf("https://localhost:%d", port)}
	o := b.weirOptions("weir-webhook", b.weir, append(slices.Clone(both),
		"--webhook-bind-address", fmt.Sprintf("127.0.0.1:%d", port), "--shutdown-delay", "0s")...)
	o.Command = "webhook"
	hook, err := weir.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	g := &guard{Child: hook.Child}
	g.asked = func(ctx context.Context) (float64, error) {
		m, err := hook.Metrics(ctx)
		return m.Sum("weir_webhook_requests_total"), err
	}
	g.stop = func(ctx context.Context) error {
		err := b.removeConfigurations(ctx)
		if g.controller != nil {
			err = errors.Join(err, g.controller.Stop(plane.DefaultGrace))
		}
		return errors.Join(err, hook.Stop(plane.DefaultGrace))
	}
	g.controller, err = weir.Launch(ctx, b.weirOptions("weir-controller", b.weir, append(slices.Clone(both), "--mode", mode, "--in-process=Off")...))
	if err == nil {
		err = b.awaitConfigurations(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, g.stop(ctx))
	}
	return g, nil
}

// awaitConfigurations waits until the API server has what to ask. The controller writes the
// mutating configuration first, if there is anything to write.
func (b *bench) awaitConfigurations(ctx context.Context) error {
	return plane.Poll(ctx, time.Minute, func(ctx context.Context) (bool, error) {
		_, err := b.admin.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, guardName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// removeConfigurations has the API server ask no webhook any more.
func (b *bench) removeConfigurations(ctx context.Context) (err error) {
	admission := b.admin.kube.AdmissionregistrationV1()
	for _, remove := range []func(context.Context, string, metav1.DeleteOptions) error{
		admission.MutatingWebhookConfigurations().Delete, admission.ValidatingWebhookConfigurations().Delete,
	} {
		if failed := remove(ctx, guardName, metav1.DeleteOptions{}); !apierrors.IsNotFound(failed) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// awaitAsked waits until the API server asks: about the deletion of an object, or about one with
// these labels that names an owner.
func (b *bench) awaitAsked(ctx context.Context, g *guard, p *load.Population, labels map[string]string) error {
	in, dry := b.user.kube.CoreV1().ConfigMaps(p.Namespace), []string{metav1.DryRunAll}
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe", Labels: labels,
		OwnerReferences: []metav1.OwnerReference{load.Reference(load.ConfigMap, p.Owner)}}}
	return plane.Poll(ctx, time.Minute, func(ctx context.Context) (bool, error) {
		_, err := in.Create(ctx, probe, metav1.CreateOptions{DryRun: dry})
		if err := errors.Join(err, in.Delete(ctx, p.Owner.Name, metav1.DeleteOptions{DryRun: dry})); err != nil {
			return false, err
		}
		asked, err := g.asked(ctx)
		return asked > 0, err
	})
}

// weirFinalizer is what the webhook puts on what a policy is about.
const weirFinalizer = "weir.dev/propagation"

// awaitFinalizers waits until a ConfigMap with a label gets weir's finalizer when it is made.
func (b *bench) awaitFinalizers(ctx context.Context, labels map[string]string) error {
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Labels: labels}}
	in := b.user.kube.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	return plane.Poll(ctx, time.Minute, func(ctx context.Context) (bool, error) {
		made, err := in.Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && slices.Contains(made.Finalizers, weirFinalizer), err
	})
}
