package plane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
)

const modulePath = "github.com/weir-dev/weir/e2e"

// A module is a folder with a go.mod that pins parts of the plane.
type module struct {
	dir     string
	ldflags string
	key     string // changes whenever its binaries would
}

// moduleDir finds this module on the machine, whatever the working directory:
// the compiler knows where this file was, and where it was told not to say so
// (-trimpath) the go command still knows the module.
func moduleDir(ctx context.Context) (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		dir := filepath.Dir(filepath.Dir(file))
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	dir, err := goOutput(ctx, "", "list", "-m", "-f", "{{.Dir}}", modulePath)
	if err != nil {
		return "", fmt.Errorf("find module %s: %w", modulePath, err)
	}
	return dir, nil
}

func openModule(ctx context.Context, dir string) (module, error) {
	m := module{dir: dir}
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return m, fmt.Errorf("read %s: %w", name, err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(data), data)
		if name == "go.mod" {
			if m.ldflags, err = versionFlags(data); err != nil {
				return m, err
			}
		}
	}
	env, err := goOutput(ctx, dir, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return m, fmt.Errorf("ask for the go version: %w", err)
	}
	fmt.Fprintf(hash, "%s\n%s", env, m.ldflags)
	m.key = hex.EncodeToString(hash.Sum(nil))[:16]
	return m, nil
}

// versionFlags gives the Kubernetes binaries the version that go.mod
// pins; unstamped ones call themselves v0.0.0 and version checks refuse them.
// Stripping the symbols halves the size of what is cached.
func versionFlags(gomod []byte) (string, error) {
	f, err := modfile.ParseLax("go.mod", gomod, nil)
	if err != nil {
		return "", fmt.Errorf("parse go.mod: %w", err)
	}
	flags := []string{"-s", "-w"}
	for _, r := range f.Require {
		if r.Mod.Path != "k8s.io/kubernetes" {
			continue
		}
		n := strings.SplitN(strings.TrimPrefix(r.Mod.Version, "v"), ".", 3)
		if len(n) != 3 {
			return "", fmt.Errorf("read the version of k8s.io/kubernetes: %q", r.Mod.Version)
		}
		for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
			for _, v := range [][2]string{
				{"gitVersion", r.Mod.Version}, {"gitMajor", n[0]}, {"gitMinor", n[1]},
				{"gitTreeState", "clean"}, {"gitCommit", "unknown"},
			} {
				flags = append(flags, "-X", pkg+"."+v[0]+"="+v[1])
			}
		}
	}
	return strings.Join(flags, " "), nil
}

func goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := goCommand(ctx, dir, args...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// goCommand runs in a module of the plane and in no workspace: a go.work
// above it would choose other versions.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	return cmd
}
