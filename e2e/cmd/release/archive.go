package main

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// archive is a tar that is two things at once. As an OCI image layout it holds the index with all
// platforms: containerd takes it so (ctr images import, and with it kind load image-archive, which
// imports all platforms). With the manifest.json of docker save it also holds the image of the
// first platform, for docker load without containerd's store. Who knows both prefers the layout.
type archive struct {
	name    string
	created time.Time
	index   v1.ImageIndex
	first   v1.Image
	// referrers are SBOMs and provenance; make image writes none.
	referrers []referrer
}

// write puts the archive in place in one step and returns the digest of the index.
func (a archive) write(path string) (v1.Hash, error) {
	dir, err := os.MkdirTemp("", "weir-image-")
	if err != nil {
		return v1.Hash{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory that stays is no failure
	if err := a.layout(dir); err != nil {
		return v1.Hash{}, fmt.Errorf("lay out the image: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return v1.Hash{}, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".image-")
	if err != nil {
		return v1.Hash{}, err
	}
	defer os.Remove(f.Name())
	if err := pack(f, dir, a.created); err != nil {
		f.Close()
		return v1.Hash{}, fmt.Errorf("write %s: %w", path, err)
	}
	// CreateTemp's files are their owner's alone; an image is no secret, and others load it.
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return v1.Hash{}, err
	}
	if err := f.Close(); err != nil {
		return v1.Hash{}, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return v1.Hash{}, err
	}
	return a.index.Digest()
}

// layout writes the directory that the archive is made of.
func (a archive) layout(dir string) error {
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	full, err := reference.ParseNormalizedNamed(a.name)
	if err != nil {
		return err
	}
	if err := p.AppendIndex(a.index, layout.WithAnnotations(map[string]string{
		// containerd takes it as it is, and the kubelet asks for a name without a registry as
		// docker.io/NAME.
		"io.containerd.image.name":          full.String(),
		"org.opencontainers.image.ref.name": a.name,
	})); err != nil {
		return err
	}
	for _, r := range a.referrers {
		if err := r.append(p); err != nil {
			return err
		}
	}
	m, err := a.first.Manifest()
	if err != nil {
		return err
	}
	blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
	layers := make([]string, len(m.Layers))
	for i, l := range m.Layers {
		layers[i] = blob(l.Digest)
	}
	docker, err := json.Marshal([]map[string]any{{"Config": blob(m.Config.Digest), "RepoTags": []string{a.name}, "Layers": layers}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "manifest.json"), docker, 0o644)
}

// pack writes the files of dir as a tar, in the order of their names.
func pack(out io.Writer, dir string, created time.Time) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(rel), ModTime: created, Mode: 0o644, Typeflag: tar.TypeReg}
		if d.IsDir() {
			h.Name, h.Mode, h.Typeflag = h.Name+"/", 0o755, tar.TypeDir
			return w.WriteHeader(h)
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		h.Size = info.Size()
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}
