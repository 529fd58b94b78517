package certs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
)

// readEvery is how often the files are read. The kubelet takes up to a minute to bring a changed
// Secret, so a watch, which can miss a swapped symlink in many ways, would gain nothing.
const readEvery = 2 * time.Second

// files is a mounted Secret, or a directory that another process writes.
type files struct {
	holder
	dir string
}

// Files returns a Source that serves tls.crt and tls.key of a directory and trusts its ca.crt. A
// process that only wants the bundle needs only ca.crt; without one, a self-signed top of tls.crt
// is the bundle.
func Files(dir string, log logr.Logger) Source {
	notYet := fmt.Errorf("certificates in %s: not read yet", dir)
	return &files{dir: dir, holder: newHolder(log.WithValues("dir", dir), notYet)}
}

func (f *files) Start(ctx context.Context) error {
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		f.read(time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (f *files) read(now time.Time) {
	crt, key, ca, err := f.load()
	if err != nil {
		f.reports.report("read certificates", err)
		f.take(now, material{whyNoBundle: err, whyNoPair: err})
		return
	}
	f.reports.report("read certificates", nil)
	m := parse(f.dir, crt, key, ca)
	f.reports.report("read the CA bundle", m.whyNoBundle)
	if len(key) > 0 { // without a key the process may not serve; if it does, GetCertificate fails
		f.reports.report("read certificate and key", m.whyNoPair)
	}
	f.take(now, m)
}

// load reads the files. A mounted Secret is replaced as a whole, by a symlink, which is resolved
// once so that the files belong together.
func (f *files) load() (crt, key, ca []byte, err error) {
	dir := f.dir
	if data, err := filepath.EvalSymlinks(filepath.Join(dir, "..data")); err == nil {
		dir = data
	}
	for name, into := range map[string]*[]byte{certKey: &crt, keyKey: &key, caKey: &ca} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil, err
		}
		*into = data
	}
	if crt == nil && key == nil && ca == nil {
		return nil, nil, nil, fmt.Errorf("none of %s, %s and %s is in %s", certKey, keyKey, caKey, f.dir)
	}
	return crt, key, ca, nil
}
