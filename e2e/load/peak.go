package load

import (
	"fmt"
	"os"

	"github.com/weir-dev/weir/e2e/plane"
)

// Peak is how much memory a process holds before something is done, and at the most while it is, in
// bytes.
func Peak(c *plane.Child, do func() error) (before, most uint64, err error) {
	// From here on the kernel keeps the highest again (proc_pid_clear_refs(5)).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.Pid()), []byte("5"), 0); err != nil {
		return 0, 0, fmt.Errorf("reset the highest memory of %s: %w", c.Name, err)
	}
	if before, err = Resident(c); err != nil {
		return 0, 0, err
	}
	if err := do(); err != nil {
		return 0, 0, err
	}
	most, err = Highest(c)
	return before, most, err
}
