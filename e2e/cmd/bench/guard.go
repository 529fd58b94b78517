package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// guardName is that of the webhook configurations, of which there is one of a kind.
const guardName = "weir"

// A guard is who judges requests: a webhook that the API server asks, or the API server.
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
	o := b.weirOptions("weir-webhook", b.weir, append(both,
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
	g.controller, err = weir.Launch(ctx, b.weirOptions("weir-controller", b.weir, append(both, "--mode", mode, "--in-process=Off")...))
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

// emptyWebhook is the first argument of a process that is to call serveEmpty.
const emptyWebhook = "empty-webhook"

// startEmpty has a webhook that allows everything unseen, and is asked about what weir's is. It is
// a process of its own, as weir's is.
func (b *bench) startEmpty(ctx context.Context, rules rules) (*guard, error) {
	port, err := plane.FreePort()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("localhost:%d", port)
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return nil, err
	}
	certFile, keyFile := filepath.Join(b.Dir, "empty-webhook.crt"), filepath.Join(b.Dir, "empty-webhook.key")
	self, err := os.Executable()
	err = errors.Join(err, os.WriteFile(certFile, certificate, 0o600), os.WriteFile(keyFile, key, 0o600))
	if err != nil {
		return nil, err
	}
	hook := plane.Command(emptyWebhook, self, filepath.Join(b.Dir, "empty-webhook.log"), emptyWebhook, address, certFile, keyFile)
	g := &guard{Child: hook, stop: func(ctx context.Context) error {
		return errors.Join(b.removeConfigurations(ctx), hook.Stop(plane.DefaultGrace))
	}}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	g.asked = func(context.Context) (float64, error) {
		answer, err := client.Get("https://" + address)
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return 0, err
		}
		return strconv.ParseFloat(string(text), 64)
	}
	err = hook.Start(ctx)
	if err == nil {
		err = plane.Poll(ctx, time.Minute, func(ctx context.Context) (bool, error) {
			_, err := g.asked(ctx)
			return err == nil, nil
		})
	}
	if err == nil {
		err = b.install(ctx, "https://"+address, certificate, rules)
	}
	if err != nil {
		return nil, errors.Join(err, g.stop(ctx))
	}
	return g, nil
}

// serveEmpty is a webhook that allows everything unseen: it decodes a review for its uid, and no
// more. A GET is answered with how many reviews it has answered. args are its address, HOST:PORT,
// and the files of its certificate and key.
func serveEmpty(ctx context.Context, args []string) error {
	var asked atomic.Int64
	hook := &http.Server{Addr: args[0], Handler: http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if in.Method == http.MethodGet {
			_, _ = fmt.Fprint(out, asked.Load())
			return
		}
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		asked.Add(1)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		review.Request = nil
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(review) // the API server went away: there is none to tell
	})}
	context.AfterFunc(ctx, func() { _ = hook.Close() })
	return hook.ListenAndServeTLS(args[1], args[2])
}

// rules are what weir's webhooks are asked about.
type rules struct {
	validating []admissionregistrationv1.ValidatingWebhook
	mutating   []admissionregistrationv1.MutatingWebhook
}

// installed are the rules of the configurations that there are.
func (b *bench) installed(ctx context.Context) (r rules, err error) {
	admission := b.admin.kube.AdmissionregistrationV1()
	v, err := admission.ValidatingWebhookConfigurations().Get(ctx, guardName, metav1.GetOptions{})
	if err != nil {
		return r, err
	}
	m, err := admission.MutatingWebhookConfigurations().Get(ctx, guardName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return rules{validating: v.Webhooks}, nil
	}
	return rules{v.Webhooks, m.Webhooks}, err
}

// install has the API server ask at an address what it would ask elsewhere.
func (b *bench) install(ctx context.Context, url string, ca []byte, r rules) error {
	client := admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca}
	meta := metav1.ObjectMeta{Name: guardName}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: slices.Clone(r.validating)}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig = client
	}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: slices.Clone(r.mutating)}
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig = client
	}
	admission := b.admin.kube.AdmissionregistrationV1()
	_, err := admission.ValidatingWebhookConfigurations().Create(ctx, validating, metav1.CreateOptions{})
	if err == nil && len(mutating.Webhooks) > 0 {
		_, err = admission.MutatingWebhookConfigurations().Create(ctx, mutating, metav1.CreateOptions{})
	}
	return err
}
