//go:build web

// Package web_test opens the page of kubectl weir ui in a real browser, before a real control
// plane: every view, what moves while it is open, what it costs with 100,000 objects, and who may
// not open it. Nothing collects in this cluster, so that what is held stays.
package web_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

var objects = flag.Int("web.objects", 20_000, "dependents of the object of TestManyDependents")

const (
	artifacts = "../artifacts/web" // screenshots
	patience  = 30 * time.Second
)

var shared struct {
	plane    *plane.Plane
	client   dynamic.Interface
	plugin   string
	chromium string
}

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	if shared.chromium, err = browser(); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "weir-web-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory that stays is no failure
	if shared.plugin, err = weir.Plugin(ctx, dir); err != nil {
		return 0, err
	}
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		return 0, err
	}
	if shared.plane, err = plane.Start(ctx, plane.Options{Out: os.Stderr}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, shared.plane.Stop()) }()
	if shared.client, err = dynamic.NewForConfig(shared.plane.Config); err != nil {
		return 0, err
	}
	if err := load.CreateCRDs(ctx, shared.plane.Config, "../../policies/crds"); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// browser is the one that CHROMIUM names, or that is installed.
func browser() (string, error) {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Chromium: install it (Debian: apt-get install chromium), or name one with CHROMIUM=…")
}

// ui is a kubectl weir ui that runs.
type ui struct {
	url  string
	cmd  *exec.Cmd
	over sync.Once
}

// serve starts one, which ends with the test.
func serve(t *testing.T, kubeconfig string, flags ...string) *ui {
	t.Helper()
	u := &ui{cmd: exec.Command(shared.plugin, append([]string{"ui", "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}, flags...)...)}
	var said strings.Builder
	u.cmd.Stderr = &said
	out, err := u.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := u.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		u.end()
		// A panic of the server, and a data race where it is built to tell, is told there only.
		if text := strings.TrimSpace(said.String()); strings.Count(text, "\n") > 0 {
			t.Errorf("kubectl weir ui said more than that the page is there:\n%s", text)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		u.end()
		t.Fatalf("kubectl weir ui printed no address: %v\n%s", err, said.String())
	}
	u.url = strings.TrimSpace(line)
	return u
}

// end kills it; a second time it has no effect.
func (u *ui) end() {
	u.over.Do(func() {
		_ = u.cmd.Process.Kill()
		_ = u.cmd.Wait() // all that it said is there then
	})
}

// ask runs another command of the plugin.
func ask(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), shared.plugin, append(args, "--kubeconfig", shared.plane.Kubeconfig, "--cache-dir", t.TempDir())...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl weir %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func screenshotFile(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(artifacts, name+".png")
}
