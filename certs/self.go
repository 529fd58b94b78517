package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"github.com/cert-manager/cert-manager/pkg/util/pki"
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"

	"github.com/weir-dev/weir/controller/await"
)

const (
	defaultCADuration   = 365 * 24 * time.Hour
	defaultLeafDuration = 7 * 24 * time.Hour

	// alone is how long a process that serves leaves it to the one that writes webhook
	// configurations to have a new CA sign: as long as that one is away, the API server is not told
	// about new CAs.
	alone = time.Hour

	// checkEvery is how often time is looked at. It is the wall clock's: a timer does not run in a
	// suspended machine.
	checkEvery = time.Second
)

// SelfOptions are those of Weir's own CA.
type SelfOptions struct {
	Config          *rest.Config
	Namespace, Name string   // of the Secret
	Names           []string // of the certificate: DNS names, and addresses
	// Serve makes a certificate; without it there is only the bundle.
	Serve bool
	// Administer has a new CA sign as soon as it has settled: this process tells the API server of
	// it.
	Administer bool
	// CADuration and LeafDuration are 365 and 7 days if zero. All processes need the same. A CA is
	// replaced when a third of its time is left, a certificate likewise.
	CADuration, LeafDuration time.Duration
	// Settle is how long a new CA is in the bundle before it signs, 30 s if zero.
	Settle time.Duration
	Log    logr.Logger
}

// self is Weir's own CA in a Secret. cert-manager's authority makes and replaces the CA, and its
// dynamic source makes and renews the certificate; between the two, self says which CA signs: the
// one that CA rotation finds in the Secret.
type self struct {
	o         SelfOptions
	client    kubernetes.Interface
	authority *authority.DynamicAuthority
	leaf      *servertls.DynamicSource
	reports   reporter

	mu        sync.Mutex
	ca        caRotation
	bundle    []byte
	changed   await.Change
	rotations []chan<- struct{}
}

// Self makes and uses Weir's own CA in a Secret. Any number of processes may start at once: the API
// server takes one of their CAs, and all use that.
func Self(o SelfOptions) Source {
	if o.CADuration == 0 {
		o.CADuration = defaultCADuration
	}
	if o.LeafDuration == 0 {
		o.LeafDuration = defaultLeafDuration
	}
	if o.Settle == 0 {
		o.Settle = settle
	}
	o.Log = o.Log.WithValues("secret", o.Namespace+"/"+o.Name)
	s := &self{
		o:       o,
		reports: reporter{log: o.Log},
		authority: &authority.DynamicAuthority{
			SecretNamespace: o.Namespace, SecretName: o.Name, SecretLabels: map[string]string{"app.kubernetes.io/managed-by": "weir"},
			RESTConfig: o.Config, CommonName: "weir-webhook-ca", CADuration: o.CADuration, LeafDuration: o.LeafDuration,
		},
		ca: caRotation{settle: o.Settle, leaf: o.LeafDuration},
	}
	if o.Serve && !o.Administer {
		s.ca.patience = alone
	}
	s.leaf = &servertls.DynamicSource{DNSNames: o.Names, Authority: signer{s}, RetryInterval: checkEvery / 4}
	return s
}

func (s *self) Start(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.o.Config)
	if err != nil {
		return fmt.Errorf("make a client for Secret %s/%s: %w", s.o.Namespace, s.o.Name, err)
	}
	s.client = client
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch, err := watchSecret(ctx, client, s.o.Namespace, s.o.Name)
	if err != nil {
		return err
	}
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		failed = s.runAuthority(logr.NewContext(ctx, quietly(s.o.Log)))
	})
	s.follow(ctx, watch)
	wg.Wait()
	if failed != nil {
		return fmt.Errorf("keep the CA in Secret %s/%s: %w", s.o.Namespace, s.o.Name, failed)
	}
	return nil
}

func (s *self) runAuthority(ctx context.Context) error {
	if s.o.Serve {
		return s.leaf.Start(ctx) // and with it the authority
	}
	return s.authority.Run(ctx)
}

// follow is the only goroutine that changes the CA rotation, but for what Remember adds. It
// publishes that, too.
func (s *self) follow(ctx context.Context, watch *secretWatch) {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case found := <-watch.found:
			s.reports.report("watch the Secret of the CA", nil)
			s.change(func(now time.Time, c *caRotation) { c.observe(now, found) })
		case err := <-watch.failed:
			s.reports.report("watch the Secret of the CA", err)
		case <-ticker.C:
			s.change(func(time.Time, *caRotation) {})
		}
		s.write(ctx)
	}
}

// change publishes what follows from a change, or from time.
func (s *self) change(do func(time.Time, *caRotation)) {
	now := time.Now()
	s.mu.Lock()
	before := s.ca.signer(now)
	do(now, &s.ca)
	after, bundle, left := s.ca.signer(now), s.ca.bundle(now), s.ca.left
	s.ca.left = 0
	resign := after != nil && (before == nil || !before.cert.Equal(after.cert))
	changed := !bytes.Equal(bundle, s.bundle)
	if changed {
		s.bundle = bundle
		s.changed.Notify()
	}
	rotations := s.rotations
	s.mu.Unlock()

	if changed {
		s.o.Log.Info("the CA bundle has changed")
	}
	if left > 0 {
		s.o.Log.Info("the CA bundle in the webhook configurations has more CAs than are trusted on: calls of webhook pods that serve certificates of the others fail until these pods are replaced",
			"left", left, "most", mostTrusted, "mostBytes", mostTrustedBytes)
	}
	if resign {
		s.o.Log.Info("certificates are signed with another CA", "serial", after.cert.SerialNumber.Text(16), "expires", after.cert.NotAfter)
		for _, ch := range rotations {
			select {
			case ch <- struct{}{}:
			default: // it was told, and has not looked yet
			}
		}
	}
	if pair, err := s.leaf.GetCertificate(nil); err == nil {
		s.reports.expired(now, pair)
	}
}

// write brings the Secret to what it ought to be. Whoever was faster has written the same; the
// watch shows it.
func (s *self) write(ctx context.Context) {
	s.mu.Lock()
	want := s.ca.want(time.Now())
	s.mu.Unlock()
	if want == nil {
		return
	}
	_, err := s.client.CoreV1().Secrets(s.o.Namespace).Update(ctx, want, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || ctx.Err() != nil {
		return
	}
	s.reports.report("write the CAs that sign and that are trusted to their Secret", err)
}

// Remember trusts what is in the webhook configurations for another day, beside Weir's own CAs: the
// webhook's pods may still have their certificates from another source. The Secret keeps it for
// processes that follow.
func (s *self) Remember(bundle []byte) error {
	before, err := parseCerts(bundle)
	if err != nil {
		return fmt.Errorf("remember an earlier CA bundle: %w", err)
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ca.remember(now, before)
	if bundle := s.ca.bundle(now); !bytes.Equal(bundle, s.bundle) { // whoever writes it does so right after this
		s.bundle = bundle
		s.changed.Notify()
	}
	return nil
}

func (s *self) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	pair, err := s.leaf.GetCertificate(hello)
	if err != nil {
		return nil, fmt.Errorf("no certificate yet: waiting for the CA in Secret %s/%s", s.o.Namespace, s.o.Name)
	}
	return pair, nil
}

func (s *self) Bundle() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bundle) == 0 {
		return nil, fmt.Errorf("no CA bundle yet: waiting for the CA in Secret %s/%s", s.o.Namespace, s.o.Name)
	}
	return s.bundle, nil
}

func (s *self) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed.Next()
}

// Expiry is when the certificate that is served ends.
func (s *self) Expiry() (time.Time, bool) {
	pair, err := s.leaf.GetCertificate(nil)
	if err != nil {
		return time.Time{}, false
	}
	return pair.Leaf.NotAfter, true
}

// signer is the authority as the dynamic source sees it: it makes CAs like the library's, and signs
// with the one whose turn it is.
type signer struct{ s *self }

func (a signer) Run(ctx context.Context) error { return a.s.authority.Run(ctx) }

func (a signer) WatchRotation(ch chan<- struct{}) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.s.rotations = append(a.s.rotations, ch)
}

func (a signer) StopWatchingRotation(chan<- struct{}) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.s.rotations = nil // there is one source, and it is at its end
}

// Sign makes the certificate valid from a little before now: the API server's clock may be behind
// this one's.
func (a signer) Sign(template *x509.Certificate) (*x509.Certificate, error) {
	now := time.Now()
	a.s.mu.Lock()
	ca := a.s.ca.signer(now)
	a.s.mu.Unlock()
	if ca == nil {
		return nil, authority.ErrCertificateNotAvailable
	}
	if !now.Before(ca.cert.NotAfter) {
		return nil, fmt.Errorf("the CA expired at %s, and is about to be replaced", ca.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	template.BasicConstraintsValid = true
	template.DNSNames, template.IPAddresses = namesAndAddresses(a.s.o.Names)
	template.NotBefore = now.Add(-min(a.s.o.LeafDuration/10, 5*time.Minute))
	template.NotAfter = earlier(now.Add(a.s.o.LeafDuration), ca.cert.NotAfter)
	_, cert, err := pki.SignCertificate(template, ca.cert, template.PublicKey, ca.key)
	return cert, err
}
