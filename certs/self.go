package certs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	defaultCADuration   = 365 * 24 * time.Hour
	defaultLeafDuration = 7 * 24 * time.Hour

	// alone is how long a process leaves it to the administering process to sign with a new CA:
	// while that one is away, nobody tells the API server about new CAs.
	alone = time.Hour
)

// The entries of the Secret of Weir's own CA with the certificate that all processes serve. Its
// other entries are the newest CA (tls.crt, tls.key) and the bundle (ca.crt).
const (
	servedCertKey = "serving.crt"
	servedKeyKey  = "serving.key"
)

// SelfOptions are the options of Weir's own CA.
type SelfOptions struct {
	Config          *rest.Config
	Namespace, Name string   // of the Secret
	Names           []string // of the certificate: DNS names, and addresses
	// Administer is set in the process that tells the API server about CAs. It signs with a new CA
	// as soon as that has settled, and makes sure that the certificate is for these names.
	Administer bool
	// CADuration and LeafDuration are 365 and 7 days if zero. All processes need the same. A CA and
	// a certificate are replaced when a third of their time is left.
	CADuration, LeafDuration time.Duration
	// Settle is how long a new CA is in the bundle before it signs, 30 s if zero.
	Settle time.Duration
	Log    logr.Logger
}

// self is Weir's own CA in a Secret. Any process writes what is due; a slower one finds it written.
type self struct {
	holder
	o      SelfOptions
	client kubernetes.Interface

	found *corev1.Secret    // nil if there is none
	last  map[string][]byte // its data when it was last seen
	ca    []byte            // its newest CA
	since time.Time         // when this process first saw ca: clocks of others do not count
}

// Self returns a Source that makes and uses Weir's own CA in a Secret. Any number of processes may
// start at once: the API server takes one of their CAs, and all use that.
func Self(o SelfOptions) Source {
	o.CADuration, o.LeafDuration = cmp.Or(o.CADuration, defaultCADuration), cmp.Or(o.LeafDuration, defaultLeafDuration)
	o.Settle = cmp.Or(o.Settle, settle)
	o.Log = o.Log.WithValues("secret", o.Namespace+"/"+o.Name)
	notYet := fmt.Errorf("waiting for the CA in Secret %s/%s", o.Namespace, o.Name)
	s := &self{o: o, holder: newHolder(o.Log, notYet)}
	s.rotation.settle = o.Settle
	return s
}

func (s *self) Start(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.o.Config)
	if err != nil {
		return fmt.Errorf("make a client for Secret %s/%s: %w", s.o.Namespace, s.o.Name, err)
	}
	s.client = client
	return followSecret(ctx, client, s.o.Namespace, s.o.Name, "the CA", &s.reports, s.see, func() {
		s.take(time.Now(), material{})
		s.write(ctx)
	})
}

// see reads the Secret. One that is lost, or broken, does not change what is served.
func (s *self) see(found *corev1.Secret) {
	now := time.Now()
	if s.found = found; found == nil {
		return
	}
	s.last = found.Data
	if ca := found.Data[certKey]; !bytes.Equal(ca, s.ca) {
		s.ca, s.since = ca, now
	}
	where := "Secret " + s.o.Namespace + "/" + s.o.Name
	s.take(now, parse(where, found.Data[servedCertKey], found.Data[servedKeyKey], found.Data[caKey]))
}

// write makes the Secret what it ought to be. If another process was faster, it wrote the same, and
// the watch shows that.
func (s *self) write(ctx context.Context) {
	want, err := s.want(time.Now())
	if err == nil && want != nil {
		secrets := s.client.CoreV1().Secrets(s.o.Namespace)
		if s.found == nil {
			want, err = secrets.Create(ctx, want, metav1.CreateOptions{})
		} else {
			want, err = secrets.Update(ctx, want, metav1.UpdateOptions{})
		}
		if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || ctx.Err() != nil {
			return
		}
		if err == nil {
			s.see(want)
		}
	}
	s.reports.report("write the CA and its certificate to their Secret", err)
}

// want returns the Secret as it ought to be, nil if it is. A lost Secret is replaced with another
// CA, since it may have been deleted for that. What is served goes on meanwhile.
func (s *self) want(now time.Time) (*corev1.Secret, error) {
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.o.Namespace, Name: s.o.Name,
		Labels: map[string]string{"app.kubernetes.io/managed-by": "weir"}}}
	data := maps.Clone(s.last)
	if s.found != nil {
		out = s.found.DeepCopy()
	} else {
		delete(data, keyKey)
	}
	var err error
	if out.Data, err = s.o.next(now, s.since, data); out.Data == nil {
		return nil, err
	}
	return out, err
}

// next returns the data that the Secret ought to hold, nil if it does. A new CA is first trusted,
// and signs once it has settled. since is when this process first saw the newest CA. Processes
// trust the old one for as long as certificates under it may be served.
func (o *SelfOptions) next(now, since time.Time, data map[string][]byte) (map[string][]byte, error) {
	ca, served := pairIn(data, certKey, keyKey), pairIn(data, servedCertKey, servedKeyKey)
	before, _ := parseCerts(data[caKey]) // if it is broken, processes trust what they read before
	out := maps.Clone(data)
	if out == nil {
		out = map[string][]byte{}
	}
	if ca == nil || !ca.Leaf.IsCA || spent(ca.Leaf, now, 3) {
		made, err := makePair(&x509.Certificate{IsCA: true, MaxPathLenZero: true,
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}, nil, now, o.CADuration)
		if err != nil {
			return nil, fmt.Errorf("make a CA: %w", err)
		}
		ca, since = made.pair, now
		out[certKey], out[keyKey] = made.certPEM, made.keyPEM
	}
	trusted := []*x509.Certificate{ca.Leaf}
	i := slices.IndexFunc(before, func(c *x509.Certificate) bool { return served != nil && signed(c, served.Leaf) })
	if i >= 0 && !before[i].Equal(ca.Leaf) {
		trusted = append(trusted, before[i])
	}
	if o.resigns(now, since, ca.Leaf, trusted, served) {
		names, addresses := namesAndAddresses(o.Names)
		made, err := makePair(&x509.Certificate{DNSNames: names, IPAddresses: addresses,
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}, ca, now, o.LeafDuration)
		if err != nil {
			return nil, fmt.Errorf("make a certificate: %w", err)
		}
		trusted = trusted[:1]
		out[servedCertKey], out[servedKeyKey] = made.certPEM, made.keyPEM
	}
	out[caKey] = encodeCerts(trusted)
	if maps.EqualFunc(out, data, bytes.Equal) {
		return nil, nil
	}
	return out, nil
}

// resigns reports whether it is time for another certificate. With a new CA the administering
// process waits until that has settled. Others wait longer, unless the certificate is close to its
// end.
func (o *SelfOptions) resigns(now, since time.Time, ca *x509.Certificate, trusted []*x509.Certificate,
	served *tls.Certificate) bool {
	switch {
	case served == nil, o.Administer && !isFor(served.Leaf, o.Names):
		return true
	case signed(ca, served.Leaf):
		return spent(served.Leaf, now, 3)
	case len(trusted) == 1: // its CA is not known
		return true
	case o.Administer:
		return !now.Before(since.Add(o.Settle))
	}
	return !now.Before(since.Add(alone)) || spent(served.Leaf, now, 6)
}

// spent reports whether at most one of so many parts of a certificate's time is left.
func spent(c *x509.Certificate, now time.Time, parts time.Duration) bool {
	return !now.Before(c.NotAfter.Add(c.NotAfter.Sub(c.NotBefore) / -parts))
}

// signed reports whether a CA of ours has signed a certificate of ours.
func signed(ca, leaf *x509.Certificate) bool {
	return bytes.Equal(ca.SubjectKeyId, leaf.AuthorityKeyId)
}

func isFor(leaf *x509.Certificate, names []string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return leaf.VerifyHostname(n) != nil })
}
