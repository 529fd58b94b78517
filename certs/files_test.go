package certs

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// mount is a directory as the kubelet makes it of a Secret, and the source that reads it.
type mount struct {
	*testing.T
	*files
	log bytes.Buffer
	now time.Time
	n   int
}

func newMount(t *testing.T) *mount {
	m := &mount{T: t, now: at}
	log := funcr.New(func(_, args string) { m.log.WriteString(args + "\n") }, funcr.Options{})
	m.files = Files(t.TempDir(), log).(*files)
	return m
}

// swap shows other files, all at once.
func (m *mount) swap(contents map[string][]byte) {
	m.Helper()
	m.n++
	data := filepath.Join(m.dir, "..data")
	next := filepath.Join(m.dir, "..v"+string(rune('0'+m.n)))
	if err := os.Mkdir(next, 0o755); err != nil {
		m.Fatal(err)
	}
	for name, content := range contents {
		if err := os.WriteFile(filepath.Join(next, name), content, 0o600); err != nil {
			m.Fatal(err)
		}
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(m.dir, name)) // it is there from the second swap on
	}
	old, _ := os.Readlink(data) // none before the first
	if err := os.Symlink(filepath.Base(next), data+"_tmp"); err != nil {
		m.Fatal(err)
	}
	if err := os.Rename(data+"_tmp", data); err != nil {
		m.Fatal(err)
	}
	if old != "" {
		if err := os.RemoveAll(filepath.Join(m.dir, old)); err != nil {
			m.Fatal(err)
		}
	}
}

func (m *mount) reads(after time.Duration) {
	m.now = m.now.Add(after)
	m.read(m.now)
}

// serves says what is served and trusted.
func (m *mount) serves(crt []byte) {
	m.Helper()
	got, err := m.GetCertificate(nil)
	if err != nil {
		m.Fatal(err)
	}
	want, err := parseCerts(crt)
	if err != nil {
		m.Fatal(err)
	}
	if !got.Leaf.Equal(want[0]) {
		m.Errorf("serves certificate %v, want %v", got.Leaf.SerialNumber, want[0].SerialNumber)
	}
}

func (m *mount) trusts(want string, of ...*madeCA) {
	m.Helper()
	bundle, err := m.Bundle()
	if got := names(bundle, of...); err != nil || got != want {
		m.Errorf("trusts %q, want %q (%v)", got, want, err)
	}
}

func TestASwappedSecretIsServedWithoutAGap(t *testing.T) {
	a, b := makeCA(at, time.Hour), makeCA(at, time.Hour)
	m := newMount(t)
	crtA, keyA := a.leaf(at, time.Hour)
	crtB, keyB := b.leaf(at, time.Hour)
	m.swap(map[string][]byte{certKey: crtA, keyKey: keyA, caKey: a.pem})
	m.reads(0)
	m.serves(crtA)
	changed := m.Changed()
	m.swap(map[string][]byte{certKey: crtB, keyKey: keyB, caKey: b.pem})
	m.reads(2 * time.Second)
	m.serves(crtA)
	m.trusts("ba", a, b)
	select {
	case <-changed:
	default:
		t.Error("the bundle changed, and its channel is open")
	}
	m.reads(settle)
	m.serves(crtB)
	m.trusts("ba", a, b)
	if end, ok := m.Expiry(); !ok || !end.Equal(at.Add(time.Hour)) {
		t.Errorf("expiry is %v, %v", end, ok)
	}
}

func TestWhatIsBrokenReplacesNothing(t *testing.T) {
	a, b := makeCA(at, time.Hour), makeCA(at, time.Hour)
	crtA, keyA := a.leaf(at, time.Hour)
	crtB, keyB := a.leaf(at, time.Hour)
	for name, c := range map[string]struct {
		files map[string][]byte
		says  string
	}{
		"certificate half written": {map[string][]byte{certKey: crtB[:len(crtB)/2], keyKey: keyB, caKey: a.pem}, "not PEM"},
		"key half written":         {map[string][]byte{certKey: crtB, keyKey: keyB[:40], caKey: a.pem}, "not a pair"},
		"key of another":           {map[string][]byte{certKey: crtB, keyKey: keyA, caKey: a.pem}, "not a pair"},
		"CA half written": {map[string][]byte{certKey: crtA, keyKey: keyA,
			caKey: append(bytes.Clone(a.pem), b.pem[:50]...)}, "after 1 certificates"},
		"CA of no certificates": {map[string][]byte{certKey: crtA, keyKey: keyA, caKey: keyB}, "PRIVATE KEY among"},
		"empty":                 {map[string][]byte{certKey: {}, keyKey: {}, caKey: {}}, "is not there"},
		"no files":              {nil, "none of tls.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMount(t)
			m.swap(map[string][]byte{certKey: crtA, keyKey: keyA, caKey: a.pem})
			m.reads(0)
			m.swap(c.files)
			for range 30 {
				m.reads(2 * time.Second)
			}
			m.serves(crtA)
			m.trusts("a", a, b)
			if got := strings.Count(m.log.String(), c.says); got != 1 {
				t.Errorf("said %q %d times, want once:\n%s", c.says, got, &m.log)
			}
			m.swap(map[string][]byte{certKey: crtB, keyKey: keyB, caKey: a.pem})
			m.reads(2 * time.Second)
			m.serves(crtB)
			if !strings.Contains(m.log.String(), "this works again") {
				t.Errorf("did not say that it works again:\n%s", &m.log)
			}
		})
	}
}

func TestABundleNeedsNoKey(t *testing.T) {
	a := makeCA(at, time.Hour)
	m := newMount(t)
	m.swap(map[string][]byte{caKey: a.pem})
	m.reads(0)
	m.trusts("a", a)
	if _, err := m.GetCertificate(nil); err == nil ||
		!strings.Contains(err.Error(), "tls.crt and tls.key: are not there") {
		t.Errorf("the error for the certificate is %v", err)
	}
	if strings.Contains(m.log.String(), "cannot") {
		t.Errorf("complained:\n%s", &m.log)
	}
}

func TestWithoutCAFile(t *testing.T) {
	a := makeCA(at, time.Hour)
	crt, key := a.leaf(at, time.Hour)
	t.Run("the top of the chain is the bundle when self-signed", func(t *testing.T) {
		m := newMount(t)
		m.swap(map[string][]byte{certKey: append(bytes.Clone(crt), a.pem...), keyKey: key})
		m.reads(0)
		m.trusts("a", a)
		m.serves(crt)
	})
	t.Run("there is no bundle otherwise", func(t *testing.T) {
		m := newMount(t)
		m.swap(map[string][]byte{certKey: crt, keyKey: key})
		m.reads(0)
		if _, err := m.Bundle(); err == nil || !strings.Contains(err.Error(), "add the CA that signed it") {
			t.Errorf("the error is %v", err)
		}
		m.serves(crt)
	})
}

func TestACertificateThatNoCASignedIsSaid(t *testing.T) {
	a, b := makeCA(at, time.Hour), makeCA(at, time.Hour)
	m := newMount(t)
	crt, key := a.leaf(at, time.Hour)
	m.swap(map[string][]byte{certKey: crt, keyKey: key, caKey: b.pem})
	m.reads(0)
	m.serves(crt)
	if !strings.Contains(m.log.String(), "no CA of the bundle has signed it") {
		t.Errorf("did not say it:\n%s", &m.log)
	}
}

func TestFilesAreReadAgainWhileStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		a := makeCA(now, time.Hour)
		dir := t.TempDir()
		source := Files(dir, logr.Discard())
		if _, err := source.Bundle(); err == nil || !strings.Contains(err.Error(), "not read yet") {
			t.Errorf("before the start the error is %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- source.Start(ctx) }()
		synctest.Wait()
		if _, err := source.Bundle(); err == nil || !strings.Contains(err.Error(), "none of tls.crt") {
			t.Errorf("of an empty directory the error is %v", err)
		}
		changed := source.Changed()
		if err := os.WriteFile(filepath.Join(dir, caKey), a.pem, 0o600); err != nil {
			t.Fatal(err)
		}
		<-changed
		if d := time.Since(now); d > readEvery {
			t.Errorf("found after %v", d)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestARestartedProcessRemembersWhatIsInTheConfigurations(t *testing.T) {
	a, b := makeCA(time.Now(), time.Hour), makeCA(time.Now(), time.Hour)
	m := newMount(t)
	m.now = time.Now()
	var source Source = m.files
	if err := source.Remember(append(bytes.Clone(b.pem), a.pem...)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Bundle(); err == nil {
		t.Error("there is a bundle before anything was read")
	}
	m.swap(map[string][]byte{caKey: b.pem})
	m.reads(0)
	m.trusts("ba", a, b)
	if err := source.Remember([]byte("nothing")); err == nil {
		t.Error("remembered what is no bundle")
	}
}
