package weir

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-dev/weir/e2e/plane"
)

// Shadow is a weir in shadow mode that looks on while others collect.
type Shadow struct {
	*Process
	binary, report string
	late           time.Duration
}

// StartShadow runs one, which calls a decision a difference when the cluster has not carried it out
// for a time.
func StartShadow(ctx context.Context, o Options, late time.Duration) (*Shadow, error) {
	s := &Shadow{binary: o.Binary, report: filepath.Join(o.Dir, "shadow.json"), late: late}
	o.Name = "shadow"
	o.Flags = append([]string{"--mode", "shadow", "--shadow-late", late.String(), "--shadow-report", s.report}, o.Flags...)
	var err error
	s.Process, err = Start(ctx, o)
	return s, err
}

// End waits until what was decided is carried out or counts as a difference, ends it, and returns
// what it has found, as users read it. It fails if there is a difference that is not one on
// purpose, or one on purpose that deletes, and is not accepted by its name.
func (s *Shadow) End(ctx context.Context, accept ...string) (string, error) {
	// What the cluster leaves undone on purpose stays open. It is a difference after that time, as
	// all else is, and the next look shows it.
	within, cancel := context.WithTimeout(ctx, s.late+10*time.Second)
	defer cancel()
	told := false
	err := wait.PollUntilContextCancel(within, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		m, err := s.Metrics(ctx)
		if err != nil {
			return false, err
		}
		told = m.Has("weir_shadow_decisions")
		seen := m.Sum("weir_graph_kinds") == m.Sum("weir_graph_kinds", "state", "synced") // what is not seen closes the gate
		return told && seen && m.Sum("weir_shadow_decisions", "result", "open") == 0 || m.Sum("weir_shadow_differences") > 0, nil
	})
	if err != nil && (!told || !wait.Interrupted(err)) {
		return "", fmt.Errorf("wait until nothing that shadow mode decided is open: %w", err)
	}
	if err := s.Stop(plane.DefaultGrace); err != nil {
		return "", err
	}
	args := []string{"shadow", s.report, "--gate", "1s"}
	for _, name := range accept {
		args = append(args, "--accept", name)
	}
	out, err := exec.CommandContext(ctx, s.binary, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("shadow mode found a difference: %w", err)
	}
	return string(out), nil
}
