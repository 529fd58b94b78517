package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/core/images"
	importer "github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const imageName = "weir-dev/weir:v1.2.3"

// made is an archive of the program in testdata, built from a copy of its own.
func made(t *testing.T, args ...string) string {
	t.Helper()
	source, out := t.TempDir(), filepath.Join(t.TempDir(), "image.tar")
	if err := os.CopyFS(source, os.DirFS("testdata/program")); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--source", source, "--out", out, "--name", imageName, "--version", "v1.2.3", "--revision", "abc", "--created", "1700000000"}, args...)
	if err := runImage(context.Background(), args); err != nil {
		t.Fatal(err)
	}
	return out
}

// indexIn is the index in an archive, with all that belongs to it checked by digest.
func indexIn(t *testing.T, path string) v1.ImageIndex {
	t.Helper()
	top, err := layout.ImageIndexFromPath(unpacked(t, path))
	if err != nil {
		t.Fatal(err)
	}
	m, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Manifests) != 1 || m.Manifests[0].Annotations["io.containerd.image.name"] != "docker.io/"+imageName {
		t.Fatalf("the layout holds %+v, want one index that the kubelet finds as %s", m.Manifests, imageName)
	}
	index, err := top.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	return index
}

func unpacked(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	r := tar.NewReader(f)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != 1700000000 {
			t.Errorf("%s is of %s, want the time that was asked for", h.Name, h.ModTime)
		}
		to := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o755)
		} else {
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(to, data, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheSameSourceGivesTheSameImageFromAnyDirectory(t *testing.T) {
	first, err := os.ReadFile(made(t))
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(made(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two archives of the same source differ")
	}
	other, err := os.ReadFile(made(t, "--version", "v1.2.4"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(first, other) {
		t.Error("another version gives the same archive")
	}
}

func TestImageOfEachPlatformRunsTheProgramWithoutPrivileges(t *testing.T) {
	index := indexIn(t, made(t))
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, d := range m.Manifests {
		platforms = append(platforms, d.Platform.String())
		img, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		type config struct {
			Platform, User string
			Entrypoint     []string
			Created        int64
			Version        string
			Revision       string
		}
		got := config{cfg.OS + "/" + cfg.Architecture, cfg.Config.User, cfg.Config.Entrypoint, cfg.Created.Unix(),
			cfg.Config.Labels["org.opencontainers.image.version"], cfg.Config.Labels["org.opencontainers.image.revision"]}
		want := config{d.Platform.String(), "65532:65532", []string{"/weir"}, 1700000000, "v1.2.3", "abc"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("config of %s (-want +got):\n%s", d.Platform, diff)
		}
		if diff := cmp.Diff([]string{"weir rwxr-xr-x 0:0"}, contents(t, img, d.Platform)); diff != "" {
			t.Errorf("files of %s (-want +got):\n%s", d.Platform, diff)
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

// contents lists an image's files, and runs the program where this machine can.
func contents(t *testing.T, img v1.Image, p *v1.Platform) []string {
	t.Helper()
	var out []string
	rc := mutate.Extract(img)
	defer rc.Close()
	r := tar.NewReader(rc)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimSpace(h.Name+" "+h.FileInfo().Mode().String()[1:]+" "+owner(h)))
		if p.OS != runtime.GOOS || p.Architecture != runtime.GOARCH {
			continue
		}
		path := filepath.Join(t.TempDir(), "weir")
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
		said, err := exec.Command(path).CombinedOutput()
		if err != nil || strings.TrimSpace(string(said)) != "v1.2.3" {
			t.Errorf("the program says %q (%v), want its version", said, err)
		}
	}
}

func owner(h *tar.Header) string {
	b, _ := json.Marshal([]int{h.Uid, h.Gid}) // two numbers
	return strings.ReplaceAll(strings.Trim(string(b), "[]"), ",", ":")
}

// What ctr images import does, and with it kind load image-archive, which runs it with
// --all-platforms in its nodes.
func TestContainerdImportsAllPlatforms(t *testing.T) {
	ctx := context.Background()
	f, err := os.Open(made(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	store, err := local.NewStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	top, err := importer.ImportIndex(ctx, store, f)
	if err != nil {
		t.Fatal(err)
	}
	got, err := images.Platforms(ctx, store, top)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range got {
		names = append(names, p.OS+"/"+p.Architecture)
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, names); diff != "" {
		t.Errorf("platforms that containerd finds (-want +got):\n%s", diff)
	}
	available, required, present, missing, err := images.Check(ctx, store, top, nil)
	if err != nil || !available || len(missing) != 0 {
		t.Errorf("containerd misses %d of %d parts (%d there): %v", len(missing), len(required), len(present), err)
	}
}

// docker load without containerd's store reads manifest.json.
func TestDockerLoadsTheFirstPlatform(t *testing.T) {
	path := made(t)
	tag, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
	if err != nil {
		t.Fatal(err)
	}
	if len(tag) != 1 || !cmp.Equal(tag[0].RepoTags, []string{imageName}) {
		t.Errorf("docker would load %+v, want %s", tag, imageName)
	}
	img, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.OS + "/" + cfg.Architecture; got != "linux/amd64" {
		t.Errorf("docker would load the image for %s", got)
	}
	if layers, err := img.Layers(); err != nil || len(layers) != 1 {
		t.Errorf("docker would find %d layers: %v", len(layers), err)
	}
}

func TestWrongPlatformIsNamed(t *testing.T) {
	err := runImage(context.Background(), []string{"--source", "testdata/program", "--out", filepath.Join(t.TempDir(), "x.tar"), "--platforms", "arm64"})
	if err == nil || !strings.Contains(err.Error(), "must be like linux/amd64") {
		t.Errorf("got %v", err)
	}
}
