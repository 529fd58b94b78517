package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// runImage writes a static binary on an empty base, for several platforms, in one archive. It does
// so for Weir, and for the programs that tests run in a cluster.
func runImage(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("image", flag.ContinueOnError)
	var (
		source    = fs.String("source", ".", "directory of the program's module")
		pkg       = fs.String("package", ".", "package of the program in its module")
		title     = fs.String("program", "weir", "what the program is called in the image")
		out       = fs.String("out", "bin/weir-image.tar", "archive to write")
		name      = fs.String("name", "localhost/weir:dev", "name under which the image is loaded, with registry and tag")
		version   = fs.String("version", "dev", "what weir version prints")
		revision  = fs.String("revision", "", "commit that it is built from, for the image's labels")
		platforms = fs.String("platforms", "linux/amd64,linux/arm64", "platforms, the first of which is what docker load takes")
		created   = fs.Int64("created", 0, "seconds since 1970: the time of all that is in the image")
	)
	if err := fs.Parse(args); err != nil {
		return err
	}
	var images []platformImage
	for _, p := range strings.Split(*platforms, ",") {
		system, arch, _ := strings.Cut(p, "/")
		binary, err := compile(ctx, *source, *pkg, system, arch, *version)
		if err != nil {
			return err
		}
		images = append(images, platformImage{os: system, arch: arch, binary: binary})
	}
	a, err := assemble(images, about{program: *title, name: *name, version: *version, revision: *revision, created: time.Unix(*created, 0).UTC()})
	if err != nil {
		return err
	}
	data, err := a.tar()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(*out), 0o755)
	}
	if err == nil {
		err = os.WriteFile(*out, data, 0o644)
	}
	if err != nil {
		return err
	}
	digest, err := a.index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s@%s in %s\n", *name, digest, *out)
	return nil
}

// compile returns the binary. Nothing of this machine goes into it: no path, no build id, no state
// of the work tree (-buildvcs), no C library. So the same source and the same Go give the same
// bytes.
func compile(ctx context.Context, source, pkg, system, arch, version string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "weir-image-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory that stays is no failure
	path := filepath.Join(dir, "program")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X github.com/weir-dev/weir/internal/version.release="+version, "-o", path, pkg)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOEXPERIMENT=", "GOOS="+system, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0")
	if log, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s for %s/%s: %w\n%s", pkg, system, arch, err, bytes.TrimSpace(log))
	}
	return os.ReadFile(path)
}
