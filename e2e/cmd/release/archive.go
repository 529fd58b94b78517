package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
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
}

// tar is the file.
func (a archive) tar() ([]byte, error) {
	dir, err := os.MkdirTemp("", "weir-image-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory that stays is no failure
	if err := a.layout(dir); err != nil {
		return nil, err
	}
	var entries []entry // in the order of their names
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, relErr := filepath.Rel(dir, path)
		entries = append(entries, entry{filepath.ToSlash(name), 0o644, data})
		return errors.Join(err, relErr)
	})
	if err != nil {
		return nil, err
	}
	return tarred(entries, a.created)
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

// entry is a file of an archive.
type entry struct {
	name string
	mode int64
	data []byte
}

// tarred makes an archive of files, in their order, all of one time and owned by root: who runs a
// program of an image cannot change it.
func tarred(entries []entry, created time.Time) ([]byte, error) {
	var out bytes.Buffer
	t := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: created, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := t.Close()
	return out.Bytes(), err
}

// zipped is tarred, compressed.
func zipped(entries []entry, created time.Time) ([]byte, error) {
	data, err := tarred(entries, created)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err = z.Write(data)
	err = errors.Join(err, z.Close())
	return out.Bytes(), err
}

// untarred are the files of an archive.
func untarred(in io.Reader) (entries []entry, err error) {
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{h.Name, h.Mode, data})
	}
}
