package certs

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/go-logr/logr/funcr"
	"github.com/weir-dev/weir/certs"
)

const (
	patience  = 2 * time.Minute
	pollEvery = 50 * time.Millisecond
	replicas  = 3
	// settled is how long new CAs settle in these tests: what they wait for takes a fraction of a
	// second here.
	settled = 3 * time.Second
)

// site is a namespace in which no ConfigMap can be written unless the API server reaches every
// replica of a webhook, and trusts what it serves.
type site struct {
	*testing.T
	namespace string
	replicas  []*replica
	control   *process // what writes the webhook configuration

	mu       sync.Mutex
	log      strings.Builder
	written  int
	failures []string
	serials  map[string]bool // of the CAs under which certificates were served, by their key's id
}

// process is a Weir, as far as certificates go.
type process struct {
	certs.Source
	end func()
}

// replica serves with a process that can be replaced, as a Service's endpoints are.
type replica struct {
	url string
	mu  sync.Mutex
	*process
}

func newSite(t *testing.T, namespace string) *site {
	s := &site{T: t, namespace: namespace, serials: map[string]bool{}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := server.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			s.mu.Lock()
			defer s.mu.Unlock()
			t.Logf("what the sources said:\n%s", s.log.String())
		}
	})
	return s
}

// logger tells which process says what, and when.
func (s *site) logger(of string) logr.Logger {
	return funcr.New(func(prefix, args string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintf(&s.log, "%s %s %s\n", time.Now().Format("15:04:05.000"), of, args)
	}, funcr.Options{})
}

// start runs a source, as one process of many.
func (s *site) start(source certs.Source) *process {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan error, 1)
	go func() { done <- source.Start(ctx) }()
	p := &process{Source: source}
	p.end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.Errorf("a source ended with: %v", err)
		}
	})
	s.Cleanup(p.end)
	return p
}

// serve runs a webhook that serves what the source gives. Each request takes a handshake of its
// own, so that each meets the certificate of its time.
func (s *site) serve(source certs.Source) *replica {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		s.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String()) // it is a listener's
	r := &replica{url: "https://localhost:" + port, process: s.start(source)}
	hook := &http.Server{
		Handler:           http.HandlerFunc(allow),
		TLSConfig:         &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate(r, h) }},
		ReadHeaderTimeout: time.Minute,
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2
	}
	hook.SetKeepAlivesEnabled(false)
	done := make(chan error, 1)
	go func() { done <- hook.ServeTLS(listener, "", "") }()
	s.Cleanup(func() {
		_ = hook.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			s.Error(err)
		}
	})
	return r
}

func (s *site) certificate(r *replica, hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	r.mu.Lock()
	p := r.process
	r.mu.Unlock()
	pair, err := p.GetCertificate(hello)
	if err == nil {
		s.mu.Lock()
		s.serials[string(pair.Leaf.AuthorityKeyId)] = true
		s.mu.Unlock()
	}
	return pair, err
}

// restart replaces the process of a replica by a new one, which is in service once it is ready.
func (s *site) restart(r *replica, source certs.Source) {
	s.Helper()
	next := s.start(source)
	s.until("the restarted webhook has a certificate", func() error { _, err := next.GetCertificate(nil); return err })
	r.mu.Lock()
	last := r.process
	r.process = next
	r.mu.Unlock()
	last.end()
}

func allow(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server says when it gets none
}

// install registers all replicas, each as a webhook that every write needs.
func (s *site) install(bundle []byte) {
	s.Helper()
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	for i, r := range s.replicas {
		c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name:              fmt.Sprintf("replica%d.%s.example.com", i, s.namespace),
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: &r.url, CABundle: bundle},
			FailurePolicy:     new(admissionregistrationv1.Fail),
			SideEffects:       new(admissionregistrationv1.SideEffectClassNone),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	api := server.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := api.Create(s.Context(), c, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = api.Delete(context.Background(), s.namespace, metav1.DeleteOptions{}) }) // the server ends soon
}

// keep plays Weir's controller: it writes the bundle of a process into the configuration whenever
// it changes, until the process ends.
func (s *site) keep(p *process) *process {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			changed := p.Changed()
			if bundle, err := p.Bundle(); err == nil {
				if err := s.writeBundle(ctx, bundle); err != nil && ctx.Err() == nil {
					s.Errorf("write the bundle: %v", err)
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	})
	inner := p.end
	p.end = sync.OnceFunc(func() { cancel(); wg.Wait(); inner() })
	s.Cleanup(p.end)
	return p
}

func (s *site) writeBundle(ctx context.Context, bundle []byte) error {
	api := server.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		c, err := api.Get(ctx, s.namespace, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.CABundle = bundle
		}
		_, err = api.Update(ctx, c, metav1.UpdateOptions{})
		return err
	})
}

// open makes the site as users have it: it returns when every write goes through all replicas, and
// from then on writes without pause until the test ends. All that fails is a failure of the test.
func (s *site) open() {
	s.Helper()
	var bundle []byte
	s.until("there is a bundle", func() (err error) { bundle, err = s.control.Bundle(); return err })
	for _, r := range s.replicas {
		s.until("every replica has a certificate", func() error { _, err := r.GetCertificate(nil); return err })
	}
	s.install(bundle)
	s.keep(s.control)
	s.until("the webhooks are called", func() error {
		s.mu.Lock()
		s.serials = map[string]bool{}
		s.mu.Unlock()
		if err := s.write(s.Context()); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.serials) == 0 {
			return errors.New("none was called")
		}
		return nil
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				err := s.write(context.WithoutCancel(ctx))
				s.mu.Lock()
				s.written++
				if err != nil {
					s.failures = append(s.failures, time.Now().Format("15:04:05.000 ")+err.Error())
				}
				s.mu.Unlock()
			}
		})
	}
	s.Cleanup(func() { cancel(); wg.Wait() })
}

// write goes through admission like any other, and leaves nothing behind.
func (s *site) write(ctx context.Context) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "written-"}}
	_, err := server.client.CoreV1().ConfigMaps(s.namespace).Create(ctx, cm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// unharmed goes on for some writes more, says what has come through so far, and fails if anything
// has not.
func (s *site) unharmed(so string) {
	s.Helper()
	goal := -1
	s.until("there are more writes", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if goal < 0 {
			goal = s.written + 50
		}
		if s.written < goal {
			return fmt.Errorf("%d of %d", s.written, goal)
		}
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Logf("%s: %d writes, under %d CAs", so, s.written, len(s.serials))
	if len(s.failures) > 0 {
		s.Fatalf("%s: %d of %d writes failed; the first: %s", so, len(s.failures), s.written, s.failures[0])
	}
}

// until waits for the end of an error.
func (s *site) until(what string, holds func() error) {
	s.Helper()
	var last error
	err := wait.PollUntilContextTimeout(s.Context(), pollEvery, patience, true, func(context.Context) (bool, error) {
		last = holds()
		return last == nil, nil
	})
	if err != nil {
		s.Fatalf("wait until %s: %v: %v", what, err, last)
	}
}
