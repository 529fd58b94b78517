package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// chart writes the chart, and what it renders for those without Helm. Both ask for the image by its
// digest.
func (r *release) chart(ctx context.Context, image v1.Hash) error {
	var entries []entry
	root := filepath.Join(r.source, "charts", "weir")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "tests" {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasPrefix(d.Name(), ".") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if data, err = r.pinned(name, data, image); err != nil {
			return err
		}
		entries = append(entries, entry{"weir/" + name, 0o644, data})
		return nil
	})
	if err != nil {
		return err
	}
	data, err := zipped(entries, r.created)
	if err != nil {
		return err
	}
	name := "weir-" + strings.TrimPrefix(r.version, "v") + ".tgz"
	if err := r.put(name, data); err != nil {
		return err
	}
	return r.manifests(ctx, name)
}

// pinned is a file of the chart as the release has it.
func (r *release) pinned(name string, data []byte, image v1.Hash) ([]byte, error) {
	text := string(data)
	switch name {
	case "Chart.yaml":
		if v := strings.TrimPrefix(r.version, "v"); !strings.Contains(text, "\nversion: "+v+"\nappVersion: "+v+"\n") {
			return nil, fmt.Errorf("charts/weir/Chart.yaml is not of version %s, which stands nowhere else", r.version)
		}
	case "values.yaml":
		for was, is := range map[string]string{
			"\n  repository: localhost/weir\n": "\n  repository: " + r.registry + "/weir\n",
			"\n  digest: \"\"\n":               "\n  digest: " + image.String() + "\n",
		} {
			if strings.Count(text, was) != 1 {
				return nil, fmt.Errorf("charts/weir/values.yaml does not have %q once", strings.TrimSpace(was))
			}
			text = strings.Replace(text, was, is, 1)
		}
	}
	return []byte(text), nil
}

const installHeader = `# Weir %s without Helm: docs/install.md says how it is applied, and what to do before it is deleted.
apiVersion: v1
kind: Namespace
metadata:
  name: weir-system
`

// manifests writes install.yaml.
func (r *release) manifests(ctx context.Context, chart string) error {
	helm, err := said(ctx, filepath.Join(r.source, "charts"), nil, "go", "tool", "-n", "helm.sh/helm/v4/cmd/helm")
	if err != nil {
		return fmt.Errorf("build helm: %w", err)
	}
	home, err := os.MkdirTemp("", "weir-helm-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(home) }() // a temporary directory that stays is no failure
	env := []string{"HELM_CONFIG_HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_DATA_HOME=" + home}
	text, err := said(ctx, r.dir, env, strings.TrimSpace(helm),
		"template", "weir", chart, "--namespace", "weir-system", "--no-hooks", "--kube-version", "1.30.0",
		"--set", "uninstall.release=false")
	if err != nil {
		return fmt.Errorf("render the chart: %w", err)
	}
	return r.put("install.yaml", []byte(fmt.Sprintf(installHeader, r.version)+text))
}

// said is what a command prints.
func said(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return string(out), err
}
