package load

import (
	"fmt"
	"os"

	"github.com/prometheus/procfs"

	"github.com/weir-dev/weir/e2e/plane"
)

// Peak is how much memory a process holds before something is done, and at the most while it is, in bytes.
func Peak(c *plane.Child, do func() error) (before, most uint64, err error) {
	p, err := procfs.NewProc(c.Pid())
	if err != nil {
		return 0, 0, fmt.Errorf("find the process of %s: %w", c.Name, err)
	}
	// From here on the kernel keeps the highest again (proc_pid_clear_refs(5)).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.Pid()), []byte("5"), 0); err != nil {
		return 0, 0, fmt.Errorf("reset the highest memory of %s: %w", c.Name, err)
	}
	was, err := p.NewStatus()
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of %s: %w", c.Name, err)
	}
	if err := do(); err != nil {
		return 0, 0, err
	}
	is, err := p.NewStatus()
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of %s: %w", c.Name, err)
	}
	return was.VmRSS, is.VmHWM, nil
}
