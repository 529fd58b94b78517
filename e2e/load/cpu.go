package load

import (
	"fmt"

	"github.com/prometheus/procfs"

	"github.com/weir-dev/weir/e2e/plane"
)

// CPU is how many seconds of processor time a process has taken.
func CPU(c *plane.Child) (float64, error) {
	p, err := procfs.NewProc(c.Pid())
	if err != nil {
		return 0, fmt.Errorf("find the process of %s: %w", c.Name, err)
	}
	stat, err := p.Stat()
	if err != nil {
		return 0, fmt.Errorf("read what %s has taken: %w", c.Name, err)
	}
	return stat.CPUTime(), nil
}
