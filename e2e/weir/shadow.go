package weir

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-dev/weir/e2e/plane"
)

// Shadow is a weir in shadow mode that looks on while others collect.
type Shadow struct {
	*Process
	plugin string
	late   time.Duration
}

var servedAt = regexp.MustCompile(`"kubectl weir shadow reads what is compared","url":"([^"]+)"`)

// ServedAt is where a weir in shadow mode serves what it has compared; empty until it says so.
func (p *Process) ServedAt() (string, error) {
	text, err := p.Output()
	if said := servedAt.FindStringSubmatch(text); said != nil {
		return said[1], err
	}
	return "", err
}

// StartShadow runs one, which calls a decision a difference when the cluster has not carried it out
// for a time.
func StartShadow(ctx context.Context, o Options, late time.Duration) (*Shadow, error) {
	plugin, err := Plugin(ctx, o.Dir)
	if err != nil {
		return nil, err
	}
	o.Name = "shadow"
	o.Flags = append([]string{"--mode", "shadow", "--shadow-late", late.String()}, o.Flags...)
	process, err := Start(ctx, o)
	return &Shadow{Process: process, plugin: plugin, late: late}, err
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
	url, err := s.ServedAt()
	if err != nil {
		return "", err
	}
	args := []string{"shadow", "--url", url, "--gate", "1s"}
	for _, name := range accept {
		args = append(args, "--accept", name)
	}
	out, err := exec.CommandContext(ctx, s.plugin, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("shadow mode found a difference: %w", err)
	}
	return string(out), s.Stop(plane.DefaultGrace)
}
