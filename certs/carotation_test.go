package certs

import (
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const leafLife = 10 * time.Minute

// reign is a Secret, and one process that looks at it.
type reign struct {
	*testing.T
	caRotation
	now    time.Time
	secret *corev1.Secret
	cas    []*madeCA
}

func newReign(t *testing.T) *reign {
	r := &reign{T: t, now: at, secret: &corev1.Secret{Data: map[string][]byte{}}}
	r.restart()
	return r
}

func (r *reign) restart() { r.caRotation = caRotation{settle: 30 * time.Second, leaf: leafLife} }

// rotate is what the authority does, which leaves all other entries.
func (r *reign) rotate() {
	ca := makeCA(r.now, 6*time.Hour)
	r.cas = append(r.cas, ca)
	r.secret = r.secret.DeepCopy()
	r.secret.Data[certKey], r.secret.Data[keyKey], r.secret.Data[caKey] = ca.pem, ca.keyInPEM, ca.pem
}

// reads is a second of the process, after some others.
func (r *reign) reads(after time.Duration) (wrote bool) {
	r.now = r.now.Add(after)
	r.observe(r.now, r.secret)
	want := r.want(r.now)
	if want == nil {
		return false
	}
	r.secret = want
	r.observe(r.now, r.secret)
	if r.want(r.now) != nil {
		r.Error("wants to write again what it has written")
	}
	return true
}

func (r *reign) is(signer, trusted string) {
	r.Helper()
	got := "nobody"
	if s := r.signer(r.now); s != nil {
		got = names(s.certPEM, r.cas...)
	}
	if bundle := names(r.bundle(r.now), r.cas...); got != signer || bundle != trusted {
		r.Errorf("after %v %s signs and %q are trusted, want %s and %q", r.now.Sub(at), got, bundle, signer, trusted)
	}
}

func TestTheFirstCASignsAtOnce(t *testing.T) {
	r := newReign(t)
	r.observe(r.now, nil)
	r.is("nobody", "")
	r.rotate()
	if !r.reads(0) {
		t.Error("did not write down which CA signs")
	}
	r.is("a", "a")
}

func TestTheNextCASignsOnceItHasSettled(t *testing.T) {
	r := newReign(t)
	r.rotate()
	r.reads(0)
	r.now = r.now.Add(time.Hour)
	r.rotate()
	if r.reads(0) {
		t.Error("wrote before anything was due")
	}
	r.is("a", "ba")
	r.reads(29 * time.Second)
	r.is("a", "ba")
	r.reads(time.Second)
	r.is("b", "ba")
	r.reads(leafLife + 29*time.Second)
	r.is("b", "ba")
	if r.reads(time.Second) {
		t.Error("wrote only to forget a CA")
	}
	r.is("b", "b")
}

func TestAProcessThatStartsInTheMiddleGoesOn(t *testing.T) {
	r := newReign(t)
	r.rotate()
	r.reads(0)
	r.rotate()
	r.restart()
	r.reads(time.Second)
	r.is("a", "ba")
	r.reads(30 * time.Second)
	r.is("b", "ba")
	r.restart()
	r.reads(time.Second)
	r.is("b", "ba")
}

func TestALostSecretIsMadeUpFromMemory(t *testing.T) {
	r := newReign(t)
	r.rotate()
	r.reads(0)
	r.rotate()
	r.reads(0)
	r.reads(30 * time.Second)
	r.is("b", "ba")

	r.observe(r.now, nil)
	r.is("b", "ba")
	r.secret = &corev1.Secret{Data: map[string][]byte{}}
	r.rotate()
	r.reads(0)
	r.is("b", "cba")
	r.restart()
	r.reads(0)
	r.is("b", "cba")
	r.reads(30 * time.Second)
	r.is("c", "cba")
}

func TestABrokenSecretChangesNothingUntilItIsRepaired(t *testing.T) {
	r := newReign(t)
	r.rotate()
	r.reads(0)
	r.secret.Data[keyKey] = []byte("broken")
	if r.reads(time.Second) {
		t.Error("wrote to a Secret that the authority is about to replace")
	}
	r.is("a", "a")
}

func TestAnExpiredCASignsNoMore(t *testing.T) {
	r := newReign(t)
	r.patience = 7 * time.Hour
	r.rotate()
	r.reads(0)
	r.now = r.now.Add(4 * time.Hour)
	r.rotate()
	r.reads(0)
	r.is("a", "ba")
	r.reads(time.Hour - time.Second)
	r.is("a", "ba")
	r.reads(time.Second) // a sixth of its life is left
	r.is("b", "ba")

	r.restart()
	r.patience = 7 * time.Hour
	r.now = at
	r.cas, r.secret = nil, &corev1.Secret{Data: map[string][]byte{}}
	r.rotate()
	r.reads(0)
	r.now = r.now.Add(5 * time.Hour)
	r.rotate()
	r.observe(r.now, r.secret) // and cannot write
	r.now = at.Add(6 * time.Hour)
	r.is("b", "b")
}

func TestACAThatAnotherReplacedStaysTrusted(t *testing.T) {
	r := newReign(t)
	r.rotate()
	r.reads(0)
	r.secret = &corev1.Secret{Data: map[string][]byte{}}
	r.rotate()
	r.secret.Data[signingCertKey], r.secret.Data[signingKeyKey] = r.secret.Data[certKey], r.secret.Data[keyKey]
	if !r.reads(0) {
		t.Error("did not write down which CA is still trusted")
	}
	r.is("b", "ba")
}

// written are CAs of another source, which are in the webhook configurations.
func (r *reign) written(valid ...time.Duration) (cas []*x509.Certificate) {
	for _, v := range valid {
		ca := makeCA(r.now, v)
		r.cas, cas = append(r.cas, ca), append(cas, ca.cert)
	}
	return cas
}

func TestCAsOfAnotherSourceStayTrustedForADay(t *testing.T) {
	r := newReign(t)
	written := r.written(100*time.Hour, time.Hour)
	r.remember(r.now, written)
	r.is("nobody", "") // a bundle begins with a CA of Weir's
	r.rotate()
	if !r.reads(0) {
		t.Error("did not write down which CAs are trusted")
	}
	r.is("c", "cab")
	r.restart()
	r.reads(time.Hour - time.Second)
	r.is("c", "cab")
	r.reads(time.Second)
	r.is("c", "ca")

	// The bundle is found written again and again, and it stays at the day.
	r.restart()
	r.remember(r.now, written)
	r.reads(23*time.Hour - time.Second)
	r.is("c", "ca")
	r.reads(time.Second)
	r.is("c", "c")
	r.restart()
	r.remember(r.now, written)
	if r.reads(0) {
		t.Error("wrote what the Secret says already")
	}
	r.is("c", "c")
	r.remember(r.now, written) // as it is found once more, before the first write
	r.is("c", "c")
}

func TestACAOfAnotherSourceIsTrustedAlsoOnceTheSecretIsKnown(t *testing.T) {
	r := newReign(t)
	r.rotate()
	r.reads(0)
	r.remember(r.now, append(r.written(100*time.Hour), r.cas[0].cert))
	r.is("a", "ab")
	if !r.reads(0) {
		t.Error("did not write down which CA is trusted")
	}
}

func TestWhatIsWrittenIsNoNewsAboutWeirsOwnCAs(t *testing.T) {
	r := newReign(t)
	r.rotate()
	r.reads(0)
	r.rotate()
	r.reads(0)
	r.reads(30 * time.Second)
	r.rotate()
	r.reads(time.Second)
	r.is("b", "cba")
	bundle, err := parseCerts(r.bundle(r.now))
	if err != nil {
		t.Fatal(err)
	}
	r.restart()
	r.remember(r.now, bundle)
	if r.reads(0) {
		t.Error("wrote what the Secret says already")
	}
	r.is("b", "cba")
	r.reads(30 * time.Second)
	r.is("c", "cba")
	r.reads(leafLife - time.Second) // the first one's time is over all the same
	r.is("c", "cb")
}

func TestABundleFillsTheSecretNoFurtherThanToAnEnd(t *testing.T) {
	for name, c := range map[string]struct {
		names int // in each, which make it large
		want  int
	}{"many": {0, mostTrusted}, "large": {500, 4}} {
		t.Run(name, func(t *testing.T) {
			r := newReign(t)
			r.rotate()
			r.reads(0)
			r.rotate()
			r.reads(0)
			r.reads(30 * time.Second) // the first retires
			r.secret.Data[trustedKey] = append(r.secret.Data[trustedKey], encodeTrusted([]trustUntil{{makeCA(at, time.Hour).cert, at}})...)
			for range 3 { // another bundle each time
				r.restart()
				var bundle []*x509.Certificate
				for range 30 {
					template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true}
					for n := range c.names {
						template.DNSNames = append(template.DNSNames, fmt.Sprintf("a-long-name-%d.of-a-certificate.test", n))
					}
					cert, _, _, _ := makeCert(template, at, 100*time.Hour, nil)
					bundle = append(bundle, cert)
				}
				r.remember(r.now, bundle)
				r.reads(0)
				if kept := trustedIn(r.secret); len(kept) != c.want {
					t.Errorf("%d are kept, want %d", len(kept), c.want)
				}
			}
			if size := len(r.secret.Data[trustedKey]); size > 2*mostTrustedBytes {
				t.Errorf("they have %d bytes", size)
			}
			if want := 30; r.left < want-mostTrusted {
				t.Errorf("%d are said to be too many", r.left)
			}
		})
	}
}
