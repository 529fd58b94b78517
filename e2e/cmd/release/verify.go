package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// opened is a release that was made, or downloaded.
type opened struct {
	dir       string
	sums      map[string]string
	statement *intoto.Statement
	stated    []byte // the statement's file

	layout layout.Path // the image, in a temporary folder
	index  v1.ImageIndex
}

func runVerify(_ context.Context, args []string) error {
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	dir := fs.String("dir", "bin/release", "the release: all of its files")
	if err := fs.Parse(args); err != nil {
		return err
	}
	o, err := open(*dir)
	if err != nil {
		return err
	}
	defer o.close()
	if err := o.verify(); err != nil {
		return err
	}
	digest, err := o.index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%d files are what %s says, and the provenance is of them and of the image %s\n", len(o.sums), sums, digest)
	fmt.Println("NOT VERIFIED: who made it, which gh attestation verify does.")
	return nil
}

// open reads a release.
func open(dir string) (*opened, error) {
	o := &opened{dir: dir, sums: map[string]string{}}
	data, err := os.ReadFile(filepath.Join(dir, sums))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || name != filepath.Base(name) {
			return nil, fmt.Errorf("%s has the line %q", sums, line)
		}
		o.sums[name] = sum
	}
	statement, err := o.one(".intoto.json")
	if err != nil {
		return nil, err
	}
	if o.stated, err = os.ReadFile(filepath.Join(dir, statement)); err != nil {
		return nil, err
	}
	o.statement = &intoto.Statement{}
	if err := protojson.Unmarshal(o.stated, o.statement); err != nil {
		return nil, fmt.Errorf("read %s: %w", statement, err)
	}
	image, err := o.one(".image.tar")
	if err != nil {
		return nil, err
	}
	return o, o.openImage(filepath.Join(dir, image))
}

// one is the file whose name ends so.
func (o *opened) one(end string) (string, error) {
	other := func(name string) bool { return !strings.HasSuffix(name, end) }
	found := slices.DeleteFunc(slices.Collect(maps.Keys(o.sums)), other)
	if len(found) != 1 {
		return "", fmt.Errorf("%s names %d files *%s, want one", sums, len(found), end)
	}
	return found[0], nil
}

func (o *opened) openImage(path string) error {
	dir, err := os.MkdirTemp("", "weir-release-")
	if err != nil {
		return err
	}
	o.layout = layout.Path(dir)
	err = unpack(path, dir)
	if err == nil {
		o.index, err = inLayout(o.layout)
	}
	if err != nil {
		o.close()
		return fmt.Errorf("read the image in %s: %w", path, err)
	}
	return nil
}

// inLayout is the one index that a layout holds.
func inLayout(p layout.Path) (v1.ImageIndex, error) {
	top, err := p.ImageIndex()
	if err != nil {
		return nil, err
	}
	m, err := top.IndexManifest()
	if err != nil {
		return nil, err
	}
	return top.ImageIndex(m.Manifests[0].Digest)
}

func (o *opened) close() { _ = os.RemoveAll(string(o.layout)) } // a temporary directory that stays is no failure

// unpack writes the files of an archive below a folder.
func unpack(path, dir string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it only opens files
	entries, err := untarred(f)
	for _, e := range entries {
		err = errors.Join(err, root.MkdirAll(filepath.Dir(e.name), 0o755), root.WriteFile(e.name, e.data, 0o644))
	}
	return err
}

// verify checks that the sums are those of the files, and that the provenance is of each file and
// of the image.
func (o *opened) verify() error {
	for name, sum := range o.sums {
		data, err := os.ReadFile(filepath.Join(o.dir, name))
		if err != nil {
			return err
		}
		if is := fmt.Sprintf("%x", sha256.Sum256(data)); is != sum {
			return fmt.Errorf("%s is not what was released: its SHA-256 is %s, and %s says %s", name, is, sums, sum)
		}
	}
	if err := o.statement.Validate(); err != nil {
		return fmt.Errorf("read the provenance: %w", err)
	}
	digest, err := o.index.Digest()
	if err != nil {
		return err
	}
	want := maps.Clone(o.sums)
	maps.DeleteFunc(want, func(name, _ string) bool {
		return strings.HasSuffix(name, ".intoto.json") || strings.HasSuffix(name, ".image.tar")
	})
	for i, s := range o.statement.Subject {
		of := want[s.Name]
		if i == 0 {
			of = digest.Hex
		}
		if of == "" || s.Digest["sha256"] != of {
			return fmt.Errorf("the provenance is of a %s with sha256 %s, and here it is %q", s.Name, s.Digest["sha256"], of)
		}
		delete(want, s.Name)
	}
	if len(want) > 0 {
		return fmt.Errorf("the provenance is not of %s", strings.Join(slices.Sorted(maps.Keys(want)), ", "))
	}
	return validate.Index(o.index)
}
