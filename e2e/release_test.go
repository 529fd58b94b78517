package e2e

import (
	"bytes"
	"context"
	"os/exec"
)

// released is how `weir release` ended.
type released struct{ out, log, err string }

// release runs `weir release` to its end.
func (w *fixture) release(kubeconfig string, flags ...string) released {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, shared.binary, append([]string{"release", "--test-arming-window=0s", "--kubeconfig", kubeconfig}, flags...)...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	r := released{}
	if err := cmd.Run(); err != nil {
		r.err = err.Error()
	}
	r.out, r.log = out.String(), log.String()
	return r
}

// versions are the resourceVersions of objects: whether anybody wrote.
func (w *fixture) versions(names []string) map[string]string {
	w.Helper()
	versions := map[string]string{}
	for _, name := range names {
		if o := w.get(name); o != nil {
			versions[name] = o.GetResourceVersion()
		}
	}
	return versions
}
