package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// program is what to compile, and for what.
type program struct {
	dir, pkg, os, arch, version string
}

// compile returns the binary. Nothing of this machine goes into it: no path, no build id, no state
// of the work tree (-buildvcs), no C library. So the same source and the same Go give the same
// bytes.
func compile(ctx context.Context, p program) ([]byte, error) {
	dir, err := os.MkdirTemp("", "weir-image-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory that stays is no failure
	path := filepath.Join(dir, "program")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X github.com/weir-dev/weir/internal/version.release="+p.version, "-o", path, p.pkg)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOEXPERIMENT=", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("build %s for %s/%s: %w\n%s", p.pkg, p.os, p.arch, err, bytes.TrimSpace(log.Bytes()))
	}
	return os.ReadFile(path)
}
