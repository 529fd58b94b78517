package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What Weir keeps in the Secret of its own CA, besides the newest CA, which is cert-manager's
// authority's. The authority overwrites its three entries when it rotates and leaves these alone.
const (
	signingCertKey = "signing.crt" // the CA that certificates are signed with: the newest, once it has settled
	signingKeyKey  = "signing.key"
	trustedKey     = "trusted.crt" // CAs of before, each with the time until which to trust it

	untilHeader = "Weir-Until"
)

// What of the bundles that are found written is trusted on, together with what is trusted already:
// who may write webhook configurations must not fill the Secret.
const (
	mostTrusted      = 16
	mostTrustedBytes = 64 << 10 // as DER; a CA has less than 2 KiB
)

// caRotation is how one CA of ours follows another. The Secret says it all, so that processes that
// start in the middle go on the same way; what a process remembers is for a Secret that loses it.
// It is a value: time is an argument.
type caRotation struct {
	settle   time.Duration // how long a CA is trusted before it signs
	patience time.Duration // how long this process leaves it to another to make the switch
	leaf     time.Duration // how long certificates are valid

	newest  *caPair   // of tls.crt and tls.key
	since   time.Time // when this process first saw newest: clocks of others do not count
	signing *caPair
	trusted []trustUntil        // sorted by until, the last first
	heard   []*x509.Certificate // of the bundles that are written, once each: what is found again later is no news, also when its time is over
	before  []*x509.Certificate // those of them that wait for a newest CA
	left    int                 // how many of these were more than is trusted on

	found *corev1.Secret // as observed; nil if there is none, or nothing usable
	said  []trustUntil   // what found says is trusted: read once, because want is asked every second
}

type trustUntil struct {
	cert  *x509.Certificate
	until time.Time
}

// observe takes the Secret as it is; nil when there is none.
func (s *caRotation) observe(now time.Time, found *corev1.Secret) {
	s.found = nil
	if found == nil {
		return // what is remembered goes on
	}
	newest := pairIn(found, certKey, keyKey)
	if newest == nil {
		return // the authority replaces it
	}
	s.found = found
	if s.newest == nil || !newest.cert.Equal(s.newest.cert) {
		s.newest, s.since = newest, now
	}
	s.said = trustedIn(found)
	for _, t := range s.said {
		s.trust(t) // over what this process remembers: all have to come to the same
	}
	signing := pairIn(found, signingCertKey, signingKeyKey)
	switch {
	case signing == nil && s.signing == nil:
		signing = newest // the first CA of all
	case signing == nil:
		signing = s.signing // the Secret was deleted or emptied: certificates of this CA are being served
	case s.signing != nil && !s.signing.cert.Equal(signing.cert):
		s.retire(now, s.signing)
	}
	s.signing = signing
	s.takeBefore(now)
	s.forget(now)
}

// remember takes the CAs of a bundle that is in the webhook configurations: certificates of them
// may be served, by pods that have theirs from somewhere else and are about to be replaced.
func (s *caRotation) remember(now time.Time, bundle []*x509.Certificate) {
	for _, cert := range bundle {
		if !slices.ContainsFunc(s.heard, cert.Equal) {
			s.heard, s.before = append(s.heard, cert), append(s.before, cert)
		}
	}
	if s.newest != nil {
		s.takeBefore(now)
	}
}

// takeBefore trusts for a while what another source had trusted. What the Secret knows stays as it
// says, also that its time is over: a process that starts over and over must not trust a CA for
// ever.
func (s *caRotation) takeBefore(now time.Time) {
	count, size := 0, 0
	for _, t := range s.trusted {
		if now.Before(t.until) {
			count, size = count+1, size+len(t.cert.Raw)
		}
	}
	for _, cert := range s.before {
		switch {
		case cert.Equal(s.newest.cert), cert.Equal(s.signing.cert), s.trusts(cert), !now.Before(cert.NotAfter):
		case count >= mostTrusted, size+len(cert.Raw) > mostTrustedBytes:
			s.left++
		default:
			count, size = count+1, size+len(cert.Raw)
			until := earlier(now.Add(unseenLeaf), cert.NotAfter)
			s.trust(trustUntil{cert, until.Truncate(time.Second)})
		}
	}
	s.before = nil
}

// signer is the CA to sign with.
func (s *caRotation) signer(now time.Time) *caPair {
	if s.signing != nil && now.Before(s.signing.cert.NotAfter) {
		return s.signing
	}
	return s.newest
}

// want is the Secret as it ought to be, nil if it is. To forget a CA is no reason to write: two
// clocks that differ would take turns.
func (s *caRotation) want(now time.Time) *corev1.Secret {
	if s.found == nil {
		return nil
	}
	after := *s
	after.trusted = slices.Clone(s.trusted)
	if s.due(now) {
		after.retire(now, s.signing)
		after.signing = s.newest
	}
	after.forget(now)
	if after.isSaid() {
		return nil
	}
	out := s.found.DeepCopy()
	out.Data[signingCertKey], out.Data[signingKeyKey] = after.signing.certPEM, after.signing.keyPEM
	out.Data[trustedKey] = encodeTrusted(after.trusted)
	return out
}

// isSaid says whether the Secret that was found needs nothing more.
func (s *caRotation) isSaid() bool {
	for _, t := range s.trusted {
		if !slices.ContainsFunc(s.said, func(k trustUntil) bool { return k.cert.Equal(t.cert) }) {
			return false
		}
	}
	return bytes.Equal(s.found.Data[signingCertKey], s.signing.certPEM) && bytes.Equal(s.found.Data[signingKeyKey], s.signing.keyPEM)
}

// due says whether it is time for this process to have the newest CA sign. Patience ends early when
// what is left to the old one, which the authority replaces when a third is left, becomes too
// little to renew certificates in peace.
func (s *caRotation) due(now time.Time) bool {
	if s.signing.cert.Equal(s.newest.cert) || now.Before(s.since.Add(s.settle)) {
		return false
	}
	old := s.signing.cert
	last := old.NotAfter.Add(old.NotAfter.Sub(old.NotBefore) / -6)
	return !now.Before(s.since.Add(s.patience)) || !now.Before(last)
}

// retire keeps a CA that signs no more trusted until the last certificate under it has expired. The
// last may be signed a little later than now, by a process that does not know yet.
func (s *caRotation) retire(now time.Time, ca *caPair) {
	if !s.trusts(ca.cert) {
		until := earlier(now.Add(s.leaf+settle), ca.cert.NotAfter)
		s.trust(trustUntil{ca.cert, until.Truncate(time.Second)})
	}
}

func (s *caRotation) trusts(cert *x509.Certificate) bool {
	return slices.ContainsFunc(s.trusted, func(t trustUntil) bool { return t.cert.Equal(cert) })
}

func (s *caRotation) trust(t trustUntil) {
	s.trusted = slices.DeleteFunc(s.trusted, func(old trustUntil) bool { return old.cert.Equal(t.cert) })
	s.trusted = append(s.trusted, t)
	slices.SortStableFunc(s.trusted, func(a, b trustUntil) int { return b.until.Compare(a.until) })
}

// forget drops what is over, and what signs again.
func (s *caRotation) forget(now time.Time) {
	s.trusted = slices.DeleteFunc(s.trusted, func(t trustUntil) bool {
		return !now.Before(t.until) || t.cert.Equal(s.signing.cert) || t.cert.Equal(s.newest.cert)
	})
}

// bundle is what to trust now, the newest first.
func (s *caRotation) bundle(now time.Time) []byte {
	if s.newest == nil {
		return nil
	}
	certs := []*x509.Certificate{s.newest.cert}
	if !s.signing.cert.Equal(s.newest.cert) && now.Before(s.signing.cert.NotAfter) {
		certs = append(certs, s.signing.cert)
	}
	for _, t := range s.trusted {
		if now.Before(t.until) {
			certs = append(certs, t.cert)
		}
	}
	return encodeCerts(certs)
}

// caPair is a CA that can sign, as it is in the Secret.
type caPair struct {
	cert            *x509.Certificate
	key             any
	certPEM, keyPEM []byte
}

// pairIn is nil for what cannot sign.
func pairIn(s *corev1.Secret, crt, key string) *caPair {
	pair, err := tls.X509KeyPair(s.Data[crt], s.Data[key])
	if err != nil || !pair.Leaf.IsCA {
		return nil
	}
	return &caPair{pair.Leaf, pair.PrivateKey, s.Data[crt], s.Data[key]}
}

func trustedIn(s *corev1.Secret) []trustUntil {
	var out []trustUntil
	for rest := s.Data[trustedKey]; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return out
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		until, errTime := time.Parse(time.RFC3339, block.Headers[untilHeader])
		if err == nil && errTime == nil {
			out = append(out, trustUntil{cert, until})
		}
	}
}

func encodeTrusted(trusted []trustUntil) []byte {
	var out bytes.Buffer
	for _, t := range trusted {
		_ = pem.Encode(&out, &pem.Block{ // a buffer takes everything
			Type: "CERTIFICATE", Headers: map[string]string{untilHeader: t.until.UTC().Format(time.RFC3339)}, Bytes: t.cert.Raw,
		})
	}
	return out.Bytes()
}
