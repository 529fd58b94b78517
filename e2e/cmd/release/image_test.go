package main

import (
	"context"
	"fmt"
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

// TestImageRunsTheProgramWithoutPrivileges on each platform, and who loads the archive finds it.
func TestImageRunsTheProgramWithoutPrivileges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := runImage(t.Context(), []string{"--source", "testdata/program", "--out", path, "--name", imageName,
		"--version", "v1.2.3", "--revision", "abc", "--created", "1700000000"}); err != nil {
		t.Fatal(err)
	}
	t.Run("each platform", func(t *testing.T) { platformsRun(t, path) })
	t.Run("containerd", func(t *testing.T) { containerdImports(t, path) })
	t.Run("docker", func(t *testing.T) { dockerLoads(t, path) })
}

func platformsRun(t *testing.T, path string) {
	dir := t.TempDir()
	if err := unpack(path, dir); err != nil {
		t.Fatal(err)
	}
	top, err := layout.ImageIndexFromPath(dir)
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
	if err == nil {
		err = validate.Index(index)
	}
	if err != nil {
		t.Fatal(err)
	}
	if m, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range m.Manifests {
		img, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		label := func(name string) string { return cfg.Config.Labels["org.opencontainers.image."+name] }
		got = append(got, fmt.Sprintf("%s: %s/%s %s %v %d %s %s %v", d.Platform, cfg.OS, cfg.Architecture, cfg.Config.User,
			cfg.Config.Entrypoint, cfg.Created.Unix(), label("version"), label("revision"), contents(t, img, d.Platform)))
	}
	want := []string{
		"linux/amd64: linux/amd64 65532:65532 [/weir] 1700000000 v1.2.3 abc [weir 755]",
		"linux/arm64: linux/arm64 65532:65532 [/weir] 1700000000 v1.2.3 abc [weir 755]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

// contents lists an image's files, and runs the program where this machine can.
func contents(t *testing.T, img v1.Image, p *v1.Platform) (names []string) {
	t.Helper()
	files := mutate.Extract(img)
	defer files.Close()
	entries, err := untarred(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, fmt.Sprintf("%s %o", e.name, e.mode))
		if p.OS != runtime.GOOS || p.Architecture != runtime.GOARCH {
			continue
		}
		path := filepath.Join(t.TempDir(), "weir")
		if err := os.WriteFile(path, e.data, 0o755); err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), path).CombinedOutput()
		if err != nil || strings.TrimSpace(string(said)) != "v1.2.3" {
			t.Errorf("the program says %q (%v), want its version", said, err)
		}
	}
	return names
}

// containerdImports: what ctr images import does, and with it kind load image-archive, which runs it
// with --all-platforms in its nodes.
func containerdImports(t *testing.T, path string) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	store, err := local.NewStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	top, err := importer.ImportIndex(ctx, store, f)
	if err != nil {
		t.Fatal(err)
	}
	platforms, err := images.Platforms(ctx, store, top)
	if err != nil || len(platforms) != 2 {
		t.Errorf("containerd finds the platforms %v: %v", platforms, err)
	}
	available, required, present, missing, err := images.Check(ctx, store, top, nil)
	if err != nil || !available || len(missing) != 0 {
		t.Errorf("containerd misses %d of %d parts (%d there): %v", len(missing), len(required), len(present), err)
	}
}

// dockerLoads: docker load without containerd's store reads manifest.json, and takes the first
// platform.
func dockerLoads(t *testing.T, path string) {
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
	if err != nil || cfg.OS+"/"+cfg.Architecture != "linux/amd64" {
		t.Errorf("docker would load the image for %+v: %v", cfg, err)
	}
	if layers, err := img.Layers(); err != nil || len(layers) != 1 {
		t.Errorf("docker would find %d layers: %v", len(layers), err)
	}
}
