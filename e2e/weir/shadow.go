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

// StartShadow runs one, which calls a decision a difference when the cluster has not carried it out for a time.
func StartShadow(ctx context.Context, o Options, late time.Duration) (*Shadow, error) {
	s := &Shadow{binary: o.Binary, report: filepath.Join(o.Dir, "shadow.json"), late: late}
	o.Name = "shadow"
	o.Flags = append([]string{"--mode", "shadow", "--shadow-late", late.String(), "--shadow-report", s.report}, o.Flags...)
	var err error
	s.Process, err = Start(ctx, o)
	return s, err
}

// End waits until what was decided is carried out or counts as a difference, ends it, and returns what it has found, as users read it. It fails
// if there is a difference that is not one on purpose.
func (s *Shadow) End(ctx context.Context) (string, error) {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, s.late+time.Minute, true, func(ctx context.Context) (bool, error) {
		m, err := s.Metrics(ctx)
		if err != nil {
			return false, err
		}
		open := m.Sum("weir_shadow_decisions", "result", "open")
		return m.Has("weir_shadow_decisions") && open == 0 || m.Sum("weir_shadow_differences") > 0, nil
	})
	if err != nil {
		return "", fmt.Errorf("wait until nothing that shadow mode decided is open: %w", err)
	}
	if err := s.Stop(plane.DefaultGrace); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, s.binary, "shadow", s.report, "--gate", "1s").CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("shadow mode found a difference: %w", err)
	}
	return string(out), nil
}
