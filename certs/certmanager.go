package certs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// applyEvery is how often the Certificate is applied, and tryEvery how often after a failure.
const (
	applyEvery = time.Minute
	tryEvery   = 5 * time.Second
)

// CertManagerOptions are the options of a Certificate of cert-manager.
type CertManagerOptions struct {
	Config                 *rest.Config
	Namespace, Name        string   // of the Certificate
	SecretName             string   // what cert-manager writes; Name if empty
	IssuerKind, IssuerName string   // Issuer if the kind is empty
	Names                  []string // DNS names, and addresses
	// Apply keeps the Certificate as these options say. Processes that only serve just read the
	// Secret.
	Apply bool
	// Settle is how long a new CA is in the bundle before a certificate under it is served, 30 s if
	// zero.
	Settle time.Duration
	Log    logr.Logger
}

// certManager follows the Secret that cert-manager writes.
type certManager struct {
	holder
	o CertManagerOptions
}

// CertManager returns a Source that serves what cert-manager issues, and trusts the CA that it
// names.
func CertManager(o CertManagerOptions) Source {
	if o.SecretName == "" {
		o.SecretName = o.Name
	}
	if o.IssuerKind == "" {
		o.IssuerKind = "Issuer"
	}
	o.Log = o.Log.WithValues("certificate", o.Namespace+"/"+o.Name)
	c := &certManager{o: o}
	c.holder = newHolder(o.Log, fmt.Errorf("%s: cert-manager has not written it yet", c.where()))
	if o.Settle != 0 {
		c.rotation.settle = o.Settle
	}
	return c
}

func (c *certManager) where() string {
	return fmt.Sprintf("Secret %s/%s of Certificate %s", c.o.Namespace, c.o.SecretName, c.o.Name)
}

func (c *certManager) Start(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.o.Config)
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", c.where(), err)
	}
	objects, err := dynamic.NewForConfig(c.o.Config)
	if err != nil {
		return fmt.Errorf("make a client for Certificate %s/%s: %w", c.o.Namespace, c.o.Name, err)
	}
	watch, err := watchSecret(ctx, client, c.o.Namespace, c.o.SecretName)
	if err != nil {
		return err
	}
	var apply time.Time // when to apply next: at once
	applied := func() {
		if now := time.Now(); c.o.Apply && !now.Before(apply) {
			apply = now.Add(c.apply(ctx, objects))
		}
	}
	applied()
	watch.follow(ctx, "the Certificate", checkEvery, &c.reports, c.see, func() {
		applied()
		c.take(time.Now(), material{})
	})
	return nil
}

// see reads the Secret. If it is gone, nothing changes: cert-manager makes it again.
func (c *certManager) see(found *corev1.Secret) {
	if found == nil {
		c.reports.report("read the Secret of the Certificate",
			errors.New(c.where()+" is gone: waiting until cert-manager creates it again"))
		return
	}
	m := parse(c.where(), found.Data[certKey], found.Data[keyKey], found.Data[caKey])
	c.reports.report("read the Secret of the Certificate", errors.Join(m.whyNoPair, m.whyNoBundle))
	c.take(time.Now(), m)
}

// apply applies the Certificate, and returns when to do so again. What keeps cert-manager from
// issuing is in the Certificate's status.
func (c *certManager) apply(ctx context.Context, objects dynamic.Interface) (again time.Duration) {
	err := applyCertificate(ctx, objects, c.o)
	if ctx.Err() != nil {
		return tryEvery
	}
	c.reports.report("apply the Certificate", err)
	if err != nil {
		return tryEvery
	}
	return applyEvery
}
