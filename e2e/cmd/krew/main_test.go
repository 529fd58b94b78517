//go:build full

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestManifestIsTrue: what it names is there, is what it says, and runs as the version that it
// says. Built twice, it is the same.
func TestManifestIsTrue(t *testing.T) {
	o := options{source: "../../..", out: t.TempDir(), version: "v1.2.3", url: "https://example.com/weir/v1.2.3/", platforms: []string{runtime.GOOS + "/" + runtime.GOARCH}}
	if err := o.run(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(o.out, "weir.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := yaml.UnmarshalStrict(data, &m); err != nil {
		t.Fatal(err)
	}
	if m.Metadata["name"] != "weir" || m.Spec.Version != o.version || len(m.Spec.ShortDescription) > 60 || len(m.Spec.Platforms) != 1 {
		t.Fatalf("the manifest is\n%s", data)
	}
	p := m.Spec.Platforms[0]
	archive, ok := strings.CutPrefix(p.URI, o.url)
	if !ok {
		t.Fatalf("uri %s is not below %s", p.URI, o.url)
	}
	packed, err := os.ReadFile(filepath.Join(o.out, archive))
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(packed)); sum != p.SHA256 {
		t.Errorf("sha256 %s, want %s", p.SHA256, sum)
	}
	dir := t.TempDir()
	unpack(t, packed, dir)
	for _, f := range p.Files {
		if _, err := os.Stat(filepath.Join(dir, f.From)); err != nil {
			t.Errorf("the manifest names a file that is not in the archive: %v", err)
		}
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, p.Bin), "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), o.version) {
		t.Errorf("kubectl-weir --version: %v\n%s, want %s", err, out, o.version)
	}
	o.out = t.TempDir()
	if err := o.run(); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(filepath.Join(o.out, archive)); err != nil || !bytes.Equal(again, packed) {
		t.Errorf("built again, it is another archive (%v)", err)
	}
}

func unpack(t *testing.T, packed []byte, dir string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, h.Name), data, os.FileMode(h.Mode)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBadInputIsRefused(t *testing.T) {
	for _, o := range []options{
		{version: "1.2.3", url: "https://example.com/"},
		{version: "v1.2.3", url: "http://example.com/"},
		{version: "v1.2.3", url: "https://example.com/weir"},
		{version: "v1.2.3", url: "https://example.com/", out: t.TempDir(), platforms: []string{"linux"}},
	} {
		if err := o.run(); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
