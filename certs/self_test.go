package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

const caLasts, leafLasts = 2 * time.Hour, 20 * time.Minute

// household is processes with Weir's own CA, on one API server and the clock of a bubble.
type household struct {
	*testing.T
	api     *apitest.Server
	written []byte // the bundle that whoever administers finds written; nil: none

	accepted map[string]time.Time // of certificates and CAs that go together, until when

	mu    sync.Mutex
	lines []string // of their logs
}

func inHousehold(t *testing.T, test func(*household)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(&household{T: t, api: apitest.New(), accepted: map[string]time.Time{}}) })
}

// begin runs a process until it is stopped.
func (h *household) begin(change ...func(*SelfOptions)) (source *self, stop func()) {
	h.Helper()
	o := SelfOptions{Config: h.api.Config(), Namespace: "weir", Name: "ca", Names: []string{"webhook.test", "10.0.0.7"},
		CADuration: caLasts, LeafDuration: leafLasts,
		Log: funcr.New(func(_, line string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.lines = append(h.lines, line)
		}, funcr.Options{})}
	for _, f := range change {
		f(&o)
	}
	source = Self(o).(*self)
	if h.written != nil && o.Administer {
		if err := source.Remember(h.written); err != nil {
			h.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(h.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			h.Error(err)
		}
	})
	h.Cleanup(stop)
	return source, stop
}

func administers(o *SelfOptions) { o.Administer = true }

// told are lines of the logs that contain a text.
func (h *household) told(text string) (out []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.lines {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return out
}

// bundle is what a process says that the API server is to trust.
func (h *household) bundle(s *self) []*x509.Certificate {
	h.Helper()
	text, err := s.Bundle()
	if err != nil {
		h.Fatal(err)
	}
	cas, err := parseCerts(text)
	if err != nil {
		h.Fatal(err)
	}
	return cas
}

// served is the certificate that a process serves now.
func (h *household) served(s *self) *tls.Certificate {
	h.Helper()
	pair, err := s.GetCertificate(nil)
	if err != nil {
		h.Fatal(err)
	}
	return pair
}

// accepts makes sure that a client which trusts these CAs takes the certificate, for the names of
// the webhook. What went together goes together until one of them ends: signatures are checked
// once.
func (h *household) accepts(cas []*x509.Certificate, pair *tls.Certificate) {
	h.Helper()
	roots, both := x509.NewCertPool(), string(pair.Leaf.Raw)
	for _, ca := range cas {
		roots.AddCert(ca)
		both += string(ca.Raw)
	}
	if time.Now().Before(h.accepted[both]) {
		return
	}
	for _, name := range []string{"webhook.test", "10.0.0.7"} {
		chains, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: time.Now(), DNSName: name})
		if err != nil {
			h.Errorf("at %s for %s: %v", time.Now().Format(time.TimeOnly), name, err)
			return
		}
		until := pair.Leaf.NotAfter
		for _, c := range chains[0] {
			until = earlier(until, c.NotAfter)
		}
		h.accepted[both] = until
	}
}

// TestProcessesThatStartAtOnceUseOneCA: whoever is slower takes that of the other.
func TestProcessesThatStartAtOnceUseOneCA(t *testing.T) {
	inHousehold(t, func(h *household) {
		unbegun := Self(SelfOptions{Namespace: "weir", Name: "ca"}).(*self)
		if _, err := unbegun.Bundle(); err == nil || !strings.Contains(err.Error(), "waiting for the CA in Secret weir/ca") {
			t.Errorf("a bundle before there is a CA: %v", err)
		}
		if _, err := unbegun.GetCertificate(nil); err == nil ||
			!strings.Contains(err.Error(), "waiting for the CA in Secret weir/ca") {
			t.Errorf("a certificate before there is a CA: %v", err)
		}
		if _, ok := unbegun.Expiry(); ok {
			t.Error("the end of a certificate that is not there")
		}
		a, _ := h.begin(administers)
		b, _ := h.begin()
		writes, _ := h.begin(administers)
		<-time.After(checkEvery / 2) // the first installation waits for no turn
		synctest.Wait()
		cas := h.bundle(a)
		for _, other := range []*self{b, writes} {
			if got := h.bundle(other); len(got) != 1 || len(cas) != 1 || !got[0].Equal(cas[0]) {
				t.Errorf("%d CAs, and %d of another process: want one, and the same", len(cas), len(got))
			}
		}
		for _, s := range []*self{a, b} {
			pair := h.served(s)
			h.accepts(cas, pair)
			if before := time.Since(pair.Leaf.NotBefore); before < leafLasts/20 || before > leafLasts/10+time.Minute {
				t.Errorf("valid since %s ago: clocks of API servers are behind", before)
			}
			if ends, ok := s.Expiry(); !ok || !ends.Equal(pair.Leaf.NotAfter) {
				t.Errorf("it says that its certificate ends at %s, %t", ends, ok)
			}
		}
		if made := len(slices.DeleteFunc(h.api.Requests(), func(r apitest.Request) bool {
			return r.Method != "POST"
		})); made > 3 {
			t.Errorf("%d tried to make the Secret", made)
		}
	})
}

// TestWhatIsServedIsTrustedWhileCAsFollowOneAnother: an API server may have learned of a bundle
// half a minute ago. One that has learned of it by a process that restarts all the time trusts what
// is served, too.
func TestWhatIsServedIsTrustedWhileCAsFollowOneAnother(t *testing.T) {
	inHousehold(t, func(h *household) {
		const step = 10 * time.Second
		admin, stop := h.begin(administers)
		other, _ := h.begin()
		<-time.After(step)
		synctest.Wait()
		first := h.bundle(admin)[0]
		var past [][]*x509.Certificate
		signers := map[string]bool{}
		for n := 0; time.Now().Before(first.NotBefore.Add(caLasts * 3 / 2)); n++ {
			past = append(past, h.bundle(admin))
			if n >= 2 {
				for _, s := range []*self{admin, other} {
					h.accepts(past[n-2], h.served(s))
				}
			}
			signers[string(h.served(other).Leaf.AuthorityKeyId)] = true
			if n%150 == 149 {
				stop()
				h.written = encodeCerts(past[n])
				admin, stop = h.begin(administers)
			}
			switch n { // what users do to the Secret
			case 50:
				h.api.Remove("secrets/weir/ca")
			case 100:
				data, _ := h.api.Get("secrets/weir/ca")["data"].(map[string]any)
				h.api.Put("secrets",
					fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: ca, namespace: weir}, data: {tls.crt: %s}}",
						data["tls.crt"]))
			}
			<-time.After(step)
			synctest.Wait()
			if t.Failed() {
				t.FailNow()
			}
		}
		if len(signers) < 3 {
			t.Errorf("%d CAs have signed in one and a half times the time of one", len(signers))
		}
		if last := h.bundle(admin); slices.ContainsFunc(last, first.Equal) {
			t.Error("the first CA is trusted still, and nothing under it is valid")
		}
		if len(h.told("serving a new certificate")) == 0 {
			t.Error("nothing is told of it")
		}
	})
}

// TestAServerAloneLeavesTheSwitchToTheOther: as long as no process tells the API server of a new
// CA, it signs nothing, for an hour.
func TestAServerAloneLeavesTheSwitchToTheOther(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*SelfOptions)
		least  time.Duration
	}{"alone": {func(*SelfOptions) {}, alone}, "that writes the configurations": {administers, settle}} {
		t.Run(name, func(t *testing.T) {
			inHousehold(t, func(h *household) {
				const lasts = 24 * time.Hour
				in, was := base64.StdEncoding.EncodeToString, makeCA(time.Now().Add(5*time.Minute-lasts*2/3), lasts)
				h.api.Put("secrets",
					fmt.Sprintf(
						"{apiVersion: v1, kind: Secret, metadata: {name: ca, namespace: weir}, data: {tls.crt: %[1]s, tls.key: %[2]s, "+
							"ca.crt: %[1]s}}", in(was.pem), in(was.keyInPEM)))
				s, _ := h.begin(c.change, func(o *SelfOptions) { o.CADuration, o.LeafDuration = lasts, lasts/2 })
				<-time.After(time.Minute)
				synctest.Wait()
				if cas := h.bundle(s); len(cas) != 1 || !cas[0].Equal(was.cert) {
					t.Fatalf("%d CAs in the bundle, want that of the Secret", len(cas))
				}
				changed, old := s.Changed(), h.served(s).Leaf.AuthorityKeyId
				<-changed
				began := time.Now()
				if cas := h.bundle(s); len(cas) != 2 {
					t.Fatalf("%d CAs in the bundle, want the new and the old", len(cas))
				}
				for string(h.served(s).Leaf.AuthorityKeyId) == string(old) && time.Since(began) < 2*alone {
					<-time.After(time.Second)
				}
				if took := time.Since(began); took < c.least || took > c.least+10*time.Second {
					t.Errorf("the new CA signs %s after it came into the bundle, want %s", took, c.least)
				}
			})
		})
	}
}

// TestACAThatCannotBeWrittenIsToldOnce: and what is there is served meanwhile.
func TestACAThatCannotBeWrittenIsToldOnce(t *testing.T) {
	inHousehold(t, func(h *household) {
		s, _ := h.begin(administers)
		<-time.After(10 * time.Second)
		synctest.Wait()
		h.api.Intercept(func(r apitest.Request) *apitest.Reply {
			if r.Method == "POST" {
				return apitest.Refuse(403, "Forbidden", "you may not create secrets")
			}
			return nil
		})
		h.api.Remove("secrets/weir/ca") // another CA is made, and what was is to be written beside it
		<-time.After(time.Minute)
		synctest.Wait()
		const what = "write the CA and its certificate to their Secret"
		if lines := h.told("cannot " + what); len(lines) != 1 || !strings.Contains(lines[0], "you may not create secrets") {
			t.Errorf("the log says %q", lines)
		}
		h.accepts(h.bundle(s), h.served(s))
		h.api.Intercept(nil)
		<-time.After(checkEvery)
		synctest.Wait()
		if lines := h.told("this works again: " + what); len(lines) != 1 {
			t.Errorf("the log says %q", lines)
		}
		data, _ := h.api.Get("secrets/weir/ca")["data"].(map[string]any)
		if data[servedCertKey] == nil {
			t.Errorf("the Secret holds %v", data)
		}
	})
}

// TestCertificatesOfAnotherSourceAreTrustedOn: they are switched to Weir's own CA, and the
// webhook's pods are replaced after the controller. Weir's own CA is replaced meanwhile, and for
// most of the day the machine is suspended: only the clock goes on.
func TestCertificatesOfAnotherSourceAreTrustedOn(t *testing.T) {
	inHousehold(t, func(h *household) {
		began, was := time.Now(), makeCA(time.Now(), 100*time.Hour)
		h.written = was.pem
		admin, suspend := h.begin(administers, func(o *SelfOptions) {
			o.CADuration, o.LeafDuration = caLasts/10, leafLasts/10
		})
		if _, err := admin.Bundle(); err == nil {
			t.Error("there is a bundle before there is a CA of Weir's")
		}
		<-admin.Changed()
		cas := h.bundle(admin)
		if len(cas) != 2 || cas[0].Equal(was.cert) || !cas[1].Equal(was.cert) {
			t.Fatalf("the first bundle has %d CAs, want Weir's, and after it the other", len(cas))
		}
		<-time.After(10 * time.Second)
		synctest.Wait()
		h.accepts(cas, h.served(admin))
		<-time.After(caLasts / 10)
		suspend()
		if now := h.bundle(admin); now[0].Equal(cas[0]) || !slices.ContainsFunc(now, was.cert.Equal) {
			t.Error("Weir's CA is not replaced, or the other is not trusted any more")
		}
		<-time.After(unseenLeaf - time.Minute - time.Since(began))
		go func() { _ = admin.Start(h.Context()) }()

		for slices.ContainsFunc(h.bundle(admin), was.cert.Equal) && time.Since(began) < 2*unseenLeaf {
			<-admin.Changed()
		}
		if took := time.Since(began).Round(time.Minute); took != unseenLeaf {
			t.Errorf("it is trusted for %s, want %s", took, unseenLeaf)
		}
		if err := admin.Remember([]byte("nothing")); err == nil ||
			!strings.Contains(err.Error(), "remember an earlier CA bundle: ") {
			t.Errorf("what is no bundle: %v", err)
		}
	})
}

// What the Secret ought to hold, by what it holds: w is a CA that signs, s a certificate that it
// has signed, t what is trusted. Each letter is one CA.
func TestWhatTheSecretOughtToHold(t *testing.T) {
	const day = 24 * time.Hour
	o := &SelfOptions{Names: []string{"webhook.test"}, CADuration: 30 * day, LeafDuration: 3 * day, Settle: settle}
	a, b, old := makeCA(at.Add(-time.Hour), 30*day), makeCA(at.Add(-time.Minute), 30*day), makeCA(at.Add(-21*day), 30*day)
	for name, c := range map[string]struct {
		ca, signer *madeCA
		trusted    []*madeCA
		left       time.Duration // of the certificate, of three days
		since      time.Duration
		administer bool
		names      []string
		want       string // w, s and t; new is one that is made
	}{
		"nothing":     {want: "w new, s new, t new"},
		"all is well": {ca: a, signer: a, trusted: []*madeCA{a}, left: 2 * day},
		"a certificate is to be renewed": {ca: a, signer: a, trusted: []*madeCA{a}, left: day,
			want: "w a, s a again, t a"},
		"there is none": {ca: a, trusted: []*madeCA{a}, want: "w a, s a again, t a"},
		"a CA is to be replaced": {ca: old, signer: old, trusted: []*madeCA{old}, left: 2 * day,
			want: "w new, s old, t new old"},
		"the CA is lost": {signer: a, trusted: []*madeCA{a}, left: 2 * day,
			want: "w new, s a, t new a"},
		"the CA is lost, and what is trusted": {signer: a, left: 2 * day, want: "w new, s new, t new"},
		"what is trusted is lost":             {ca: a, signer: a, left: 2 * day, want: "w a, s a, t a"},
		"more is trusted than there is to trust": {ca: a, signer: a, trusted: []*madeCA{b, old, a}, left: 2 * day,
			want: "w a, s a, t a"},
		"a new CA settles": {ca: b, signer: a, trusted: []*madeCA{b, a}, left: 2 * day, administer: true,
			since: settle - time.Second},
		"a new CA has settled": {ca: b, signer: a, trusted: []*madeCA{b, a}, left: 2 * day, administer: true,
			since: settle, want: "w b, s b again, t b"},
		"it is for another to have it sign": {ca: b, signer: a, trusted: []*madeCA{b, a}, left: 2 * day,
			since: alone - time.Second},
		"which is not there": {ca: b, signer: a, trusted: []*madeCA{b, a}, left: 2 * day, since: alone,
			want: "w b, s b again, t b"},
		"and little time is left": {ca: b, signer: a, trusted: []*madeCA{b, a}, left: day / 2,
			want: "w b, s b again, t b"},
		"the certificate is for another name": {ca: a, signer: a, trusted: []*madeCA{a}, left: 2 * day, administer: true,
			names: []string{"10.0.0.7"}, want: "w a, s a again, t a"},
		"which is for another to see": {ca: a, signer: a, trusted: []*madeCA{a}, left: 2 * day, names: []string{"10.0.0.7"}},
	} {
		o := *o
		if o.Administer = c.administer; c.names != nil {
			o.Names = c.names
		}
		data := map[string][]byte{"note": []byte("a user's")}
		if c.ca != nil {
			data[certKey], data[keyKey] = c.ca.pem, c.ca.keyInPEM
		}
		if c.signer != nil {
			data[servedCertKey], data[servedKeyKey] = c.signer.leaf(at.Add(c.left-3*day), 3*day)
		}
		for _, ca := range c.trusted {
			data[caKey] = append(data[caKey], ca.pem...)
		}
		next, err := o.next(at, at.Add(-c.since), data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := ""
		if next != nil {
			got = "w " + letter(next[certKey], a, b, old) + ", s " +
				signerOf(pairIn(next, servedCertKey, servedKeyKey).Leaf, a, b, old)
			if !bytes.Equal(next[servedCertKey], data[servedCertKey]) && !strings.HasSuffix(got, "new") {
				got += " again"
			}
			got += ", t"
			trusted, _ := parseCerts(next[caKey])
			for _, ca := range trusted {
				got += " " + letter(encodeCerts([]*x509.Certificate{ca}), a, b, old)
			}
			if string(next["note"]) != "a user's" {
				t.Errorf("%s: what others have put there is lost", name)
			}
			if again, err := o.next(at, at, next); again != nil || err != nil {
				t.Errorf("%s: then it is changed once more: %v", name, err)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func letter(crt []byte, a, b, old *madeCA) string {
	for name, ca := range map[string]*madeCA{"a": a, "b": b, "old": old} {
		if bytes.Equal(crt, ca.pem) {
			return name
		}
	}
	return "new"
}

func signerOf(leaf *x509.Certificate, a, b, old *madeCA) string {
	for name, ca := range map[string]*madeCA{"a": a, "b": b, "old": old} {
		if signs(ca.cert, []*x509.Certificate{leaf}) {
			return name
		}
	}
	return "new"
}
