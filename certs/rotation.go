package certs

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"
)

// unseenLeaf is how long a CA stays trusted that is no longer offered and of which no certificate
// was seen: a process that has only ca.crt does not know what is served elsewhere. Mounted Secrets
// follow within minutes.
const unseenLeaf = 24 * time.Hour

// rotation decides which certificate is served, and which CAs are trusted. It has no clock: time is
// an argument.
type rotation struct {
	settle  time.Duration
	cas     []*trustedCA // first those that are offered, in their order, then those that were
	serving *tls.Certificate
	next    *tls.Certificate // replaces serving once its CA has settled; nil if there is none
}

type trustedCA struct {
	cert    *x509.Certificate
	since   time.Time // when it came into the bundle; zero if it was there from the first
	offered bool
	until   time.Time // when it leaves the bundle, once it is not offered any more
	leaves  time.Time // when the last certificate seen under it expires; zero if none was seen
}

// trust sets the CAs that are offered from now on. Earlier ones stay while certificates under them
// may be served.
func (t *rotation) trust(now time.Time, offered []*x509.Certificate) {
	since := now
	if len(t.cas) == 0 {
		since = time.Time{} // there is nothing that it replaces
	}
	var cas []*trustedCA
	for _, cert := range offered {
		if slices.ContainsFunc(cas, func(c *trustedCA) bool { return c.cert.Equal(cert) }) {
			continue
		}
		ca := &trustedCA{cert: cert, since: since}
		if i := slices.IndexFunc(t.cas, func(c *trustedCA) bool { return c.cert.Equal(cert) }); i >= 0 {
			ca = t.cas[i]
			t.cas = slices.Delete(t.cas, i, i+1)
		}
		ca.offered = true
		cas = append(cas, ca)
	}
	for _, old := range t.cas {
		if old.offered {
			old.offered = false
			old.until = now.Add(unseenLeaf)
			if !old.leaves.IsZero() {
				old.until = old.leaves
			}
			old.until = earlier(old.until, old.cert.NotAfter)
		}
	}
	t.cas = append(cas, t.cas...)
}

// remember adds CAs that another process trusted: certificates under them may be served.
func (t *rotation) remember(now time.Time, before []*x509.Certificate) {
	for _, cert := range before {
		if !slices.ContainsFunc(t.cas, func(c *trustedCA) bool { return c.cert.Equal(cert) }) {
			t.cas = append(t.cas, &trustedCA{cert: cert, until: earlier(now.Add(unseenLeaf), cert.NotAfter)})
		}
	}
}

// note remembers until when a certificate may be served, here or elsewhere.
func (t *rotation) note(chain []*x509.Certificate) {
	for _, ca := range t.cas {
		if signs(ca.cert, chain) {
			ca.leaves = later(ca.leaves, chain[0].NotAfter)
		}
	}
}

// offer sets the certificate that is to be served when its CA has settled.
func (t *rotation) offer(pair *tls.Certificate) {
	if t.serving == nil {
		t.serving = pair
		return
	}
	t.next = pair
	if slices.EqualFunc(pair.Certificate, t.serving.Certificate, slices.Equal) {
		t.next = nil // it is served
	}
}

// turn drops CAs whose time is over, and reports whether the next certificate is served from now
// on.
func (t *rotation) turn(now time.Time) (switched bool) {
	t.cas = slices.DeleteFunc(t.cas, func(c *trustedCA) bool { return !c.offered && !now.Before(c.until) })
	if t.next == nil || t.whyNot(now) != "" {
		return false
	}
	t.serving, t.next = t.next, nil
	return true
}

// whyNot returns why the next certificate is not served yet; empty if it is to be.
func (t *rotation) whyNot(now time.Time) string {
	if !now.Before(t.serving.Leaf.NotAfter) {
		return "" // what is served has expired, and the next is no worse
	}
	if !now.Before(t.next.Leaf.NotAfter) {
		return "it has expired, and what is served has not"
	}
	if len(t.cas) == 0 {
		return ""
	}
	chain, err := chainOf(t.next)
	if err != nil {
		return err.Error()
	}
	why := "none of the CAs in " + caKey + " has signed it"
	for _, ca := range t.cas {
		if !signs(ca.cert, chain) {
			continue
		}
		if !now.Before(ca.since.Add(t.settle)) {
			return ""
		}
		why = waitsForCA
	}
	return why
}

// waitsForCA is the reason of whyNot that passes by itself.
const waitsForCA = "its CA is new, and has to be in the webhook configurations first"

// known reports whether the API server can verify what is served. Without any CA, that is not for
// this process to judge.
func (t *rotation) known() bool {
	if t.serving == nil || len(t.cas) == 0 {
		return true
	}
	chain, err := chainOf(t.serving)
	return err == nil && slices.ContainsFunc(t.cas, func(c *trustedCA) bool { return signs(c.cert, chain) })
}

// bundle returns what to trust. It is empty while all CAs are only remembered.
func (t *rotation) bundle() []byte {
	if !slices.ContainsFunc(t.cas, func(c *trustedCA) bool { return c.offered }) {
		return nil
	}
	var certs []*x509.Certificate
	for _, ca := range t.cas {
		certs = append(certs, ca.cert)
	}
	return encodeCerts(certs)
}
