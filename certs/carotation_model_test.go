package certs

import (
	"bytes"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// modelLife is that of certificates here: two minutes, so that the model gets to see the end of
// many.
const modelLife = 2 * time.Minute

// cluster is a cluster in which time goes by seconds: one Secret, a controller that brings its
// bundle to the API server, and webhooks. All see the Secret late, and their clocks differ.
type cluster struct {
	t        *rapid.T
	now      time.Time
	secret   *corev1.Secret
	version  int
	cas      []*madeCA
	webhooks []*member
	control  *member
	inServer []byte   // the bundle that the API server uses
	onTheWay [][]byte // what the controller has written, a second ago and before
}

// member is one process.
type member struct {
	caRotation
	skew    time.Duration
	lag     int       // how many seconds pass between its looks at the Secret
	seen    int       // the version of the Secret that it has seen last
	pending int       // seconds until it looks
	down    int       // seconds until it is back
	signer  *caPair   // whose certificate it serves
	until   time.Time // when that expires
}

func (w *cluster) start(patience time.Duration, m *member) {
	m.caRotation = caRotation{settle: 30 * time.Second, patience: patience, leaf: modelLife}
	m.seen, m.signer = -1, nil
}

// step is a second of a process.
func (w *cluster) step(m *member) {
	now := w.now.Add(m.skew)
	if m.down > 0 {
		m.down--
		return
	}
	if m.pending--; m.pending <= 0 {
		m.pending = m.lag
		if m.seen != w.version {
			m.seen = w.version
			m.observe(now, w.secret)
		}
	}
	if want := m.want(now); want != nil && m.seen == w.version { // otherwise it is a conflict
		w.secret, w.version = want, w.version+1
	}
	if s := m.caRotation.signer(now); s != nil && (m.signer == nil || !m.signer.cert.Equal(s.cert) || w.now.After(m.until.Add(-modelLife/3))) {
		m.signer, m.until = s, earlier(w.now.Add(modelLife), s.cert.NotAfter)
	}
}

func (w *cluster) rotate() {
	ca := makeCA(w.now.Add(-time.Minute), 4*time.Hour)
	w.cas = append(w.cas, ca)
	data := map[string][]byte{}
	if w.secret != nil {
		data = w.secret.DeepCopy().Data
	}
	data[certKey], data[keyKey], data[caKey] = ca.pem, ca.keyInPEM, ca.pem
	w.secret, w.version = &corev1.Secret{Data: data}, w.version+1
}

// lose deletes the Secret. Who starts before one that remembers has written it again cannot know
// better than to sign with the CA that it finds, so no process starts meanwhile.
func (w *cluster) lose() {
	for range 30 + w.control.down {
		w.second()
	}
	w.secret = nil
	w.rotate()
	for range 10 {
		w.second()
	}
}

// remember has the controller find what is written.
func (w *cluster) remember() {
	written, err := parseCerts(w.inServer)
	if err != nil {
		w.t.Fatal(err)
	}
	w.control.remember(w.now.Add(w.control.skew), written)
}

// second lets everybody act; what the controller has goes to the API server within three seconds.
func (w *cluster) second() {
	w.now = w.now.Add(time.Second)
	for _, m := range w.webhooks {
		w.step(m)
	}
	w.step(w.control)
	if w.control.down == 0 {
		w.onTheWay = append(w.onTheWay, w.control.bundle(w.now.Add(w.control.skew)))
		if len(w.onTheWay) > 3 {
			w.onTheWay = w.onTheWay[1:]
		}
		if b := w.onTheWay[0]; b != nil {
			w.inServer = b
		}
	}
	for i, m := range w.webhooks {
		if m.down == 0 && m.signer != nil && w.inServer != nil && !bytes.Contains(w.inServer, m.signer.certPEM) {
			w.t.Fatalf("%v after the start webhook %d serves under %s, and the API server trusts %q",
				w.now.Sub(at), i, names(m.signer.certPEM, w.cas...), names(w.inServer, w.cas...))
		}
	}
}

// TestTheAPIServerAlwaysKnowsWhatIsServed is what the package promises, whatever is rotated,
// restarted or away.
func TestTheAPIServerAlwaysKnowsWhatIsServed(t *testing.T) {
	switches := 0
	rapid.Check(t, func(t *rapid.T) {
		w := &cluster{t: t, now: at, control: &member{lag: rapid.IntRange(1, 3).Draw(t, "lag")}}
		w.start(0, w.control)
		for range 3 {
			m := &member{lag: rapid.IntRange(1, 3).Draw(t, "lag"), skew: time.Duration(rapid.IntRange(-90, 90).Draw(t, "skew")) * time.Second}
			w.start(time.Hour, m)
			w.webhooks = append(w.webhooks, m)
		}
		w.rotate()
		for range 10 {
			w.second()
		}
		for range rapid.IntRange(1, 12).Draw(t, "events") {
			switch rapid.SampledFrom([]string{"rotate", "lose", "webhook restarts", "controller restarts", "nothing"}).Draw(t, "event") {
			case "rotate":
				w.rotate()
			case "lose":
				w.lose()
			case "webhook restarts":
				m := w.webhooks[rapid.IntRange(0, 2).Draw(t, "which")]
				w.start(time.Hour, m)
				m.down = rapid.IntRange(0, 20).Draw(t, "down")
			case "controller restarts":
				w.start(0, w.control)
				w.remember()
				w.control.down = rapid.IntRange(0, 100).Draw(t, "down")
			}
			for range rapid.SampledFrom([]int{1, 3, 10, 29, 35, 60, 160}).Draw(t, "seconds") {
				w.second()
			}
		}
		for range 150 {
			w.second()
		}
		version := w.version
		for range 60 {
			w.second()
		}
		if w.version != version {
			t.Fatalf("the Secret is written again and again")
		}
		last := w.cas[len(w.cas)-1]
		for i, m := range append(w.webhooks, w.control) {
			if !m.signing.cert.Equal(last.cert) {
				t.Fatalf("process %d does not sign with the last CA", i)
			}
		}
		switches += len(w.cas) - 1
	})
	if switches == 0 {
		t.Error("no CA was ever replaced")
	}
}
