package certs

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

// turning is a rotation, driven step by step.
type turning struct {
	*testing.T
	rotation
	now time.Time
	cas []*madeCA
}

func newTurning(t *testing.T, cas ...*madeCA) *turning {
	return &turning{T: t, rotation: rotation{settle: 30 * time.Second}, now: at, cas: cas}
}

// offers takes CAs and, unless it is nil, a certificate.
func (t *turning) offers(pair *tls.Certificate, cas ...*madeCA) {
	t.Helper()
	var certs []*x509.Certificate
	for _, ca := range cas {
		certs = append(certs, ca.cert)
	}
	if certs != nil {
		t.trust(t.now, certs)
	}
	if pair != nil {
		chain, err := chainOf(pair)
		if err != nil {
			t.Fatal(err)
		}
		t.note(chain)
		t.offer(pair)
	}
	t.turn(t.now)
}

func (t *turning) after(d time.Duration) {
	t.now = t.now.Add(d)
	t.turn(t.now)
}

func (t *turning) serves(want *tls.Certificate) {
	t.Helper()
	if t.serving != want {
		t.Errorf("%v after the start: serves another certificate", t.now.Sub(at))
	}
}

func (t *turning) trusts(want string) {
	t.Helper()
	if got := names(t.bundle(), t.cas...); got != want {
		t.Errorf("%v after the start: trusts %q, want %q", t.now.Sub(at), got, want)
	}
}

func TestTheFirstCertificateIsServedAtOnce(t *testing.T) {
	a := makeCA(at, time.Hour)
	x := newTurning(t, a)
	leaf := a.pair(at, time.Minute)
	x.offers(leaf, a)
	x.serves(leaf)
	x.trusts("a")
}

func TestARenewedCertificateOfAKnownCAIsServedAtOnce(t *testing.T) {
	a := makeCA(at, time.Hour)
	x := newTurning(t, a)
	x.offers(a.pair(at, time.Minute), a)
	renewed := a.pair(at, 2*time.Minute)
	x.offers(renewed, a)
	x.serves(renewed)
}

func TestANewCAIsTrustedBeforeItsCertificateIsServed(t *testing.T) {
	a, b := makeCA(at, time.Hour), makeCA(at, time.Hour)
	x := newTurning(t, a, b)
	old, young := a.pair(at, 10*time.Minute), b.pair(at, time.Hour)
	x.offers(old, a)
	x.after(time.Minute)
	x.offers(young, b)
	x.serves(old)
	x.trusts("ba")
	x.after(29 * time.Second)
	x.offers(young, b) // as each read does
	x.serves(old)
	x.after(time.Second)
	x.serves(young)
	x.trusts("ba")
	x.after(9 * time.Minute) // the old certificate may be served elsewhere until it expires
	x.trusts("b")
}

func TestAnExpiredCertificateDoesNotWaitForTheNextCA(t *testing.T) {
	a, b := makeCA(at, time.Hour), makeCA(at, time.Hour)
	x := newTurning(t, a, b)
	old, young := a.pair(at, time.Minute), b.pair(at, time.Hour)
	x.offers(old, a)
	x.after(55 * time.Second)
	x.offers(young, b)
	x.serves(old)
	x.after(5 * time.Second)
	x.serves(young)
}

func TestAnExpiredCertificateIsServedRatherThanNone(t *testing.T) {
	a := makeCA(at, time.Hour)
	x := newTurning(t, a)
	leaf := a.pair(at, time.Minute)
	x.offers(leaf, a)
	x.after(30 * time.Minute)
	x.serves(leaf)
	x.trusts("a")
}

func TestNothingWorseReplacesWhatIsServed(t *testing.T) {
	a, b := makeCA(at.Add(-time.Hour), 24*time.Hour), makeCA(at, time.Hour)
	for name, worse := range map[string]*tls.Certificate{
		"of an unknown CA": b.pair(at, time.Hour),
		"expired":          a.pair(at.Add(-time.Hour), time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			x := newTurning(t, a, b)
			good := a.pair(at, time.Hour)
			x.offers(good, a)
			x.offers(worse, a)
			x.after(59 * time.Minute)
			x.serves(good)
		})
	}
}

func TestTakingBackANewCAKeepsTheOldCertificate(t *testing.T) {
	a, b := makeCA(at, 48*time.Hour), makeCA(at, 48*time.Hour)
	x := newTurning(t, a, b)
	old := a.pair(at, 24*time.Hour)
	x.offers(old, a)
	x.offers(b.pair(at, time.Hour), b)
	x.after(10 * time.Second)
	x.offers(old, a)
	x.after(time.Minute)
	x.serves(old)
	x.trusts("ab")
	x.after(time.Hour)
	x.trusts("a")
}

func TestACAWithoutKnownCertificatesStaysForADay(t *testing.T) {
	a, b := makeCA(at, 48*time.Hour), makeCA(at, 48*time.Hour)
	x := newTurning(t, a, b)
	x.offers(nil, a)
	x.offers(nil, b)
	x.after(unseenLeaf - time.Second)
	x.trusts("ba")
	x.after(time.Second)
	x.trusts("b")
}

func TestACAThatWasGivenUpLeavesWhenItExpires(t *testing.T) {
	a, b := makeCA(at, time.Hour), makeCA(at, 48*time.Hour)
	x := newTurning(t, a, b)
	x.offers(nil, a)
	x.offers(nil, b)
	x.after(time.Hour)
	x.trusts("b")
}

func TestWhatAnotherProcessTrustedStaysForADay(t *testing.T) {
	a, b, c := makeCA(at, 48*time.Hour), makeCA(at, 48*time.Hour), makeCA(at, time.Hour)
	x := newTurning(t, a, b, c)
	x.remember(x.now, []*x509.Certificate{a.cert, b.cert, c.cert})
	x.trusts("") // nothing says that any of them is the one
	x.offers(nil, b)
	x.trusts("bac")
	x.after(time.Hour)
	x.trusts("ba")
	x.after(unseenLeaf)
	x.trusts("b")
}

func TestACAThatWasTrustedBeforeHasSettled(t *testing.T) {
	a, b := makeCA(at, time.Hour), makeCA(at, time.Hour)
	x := newTurning(t, a, b)
	x.remember(x.now, []*x509.Certificate{a.cert, b.cert})
	x.offers(a.pair(at, time.Hour), a)
	young := b.pair(at, time.Hour)
	x.offers(young, b)
	x.serves(young)
}
