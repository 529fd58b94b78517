package node

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// removeTree removes a directory in which there may be mounts: volumes, root file systems, network
// namespaces.
func removeTree(path string) error {
	mounts, err := mountsBelow(path)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(mounts) { // what was mounted last first
		if err := syscall.Unmount(m, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", m, err)
		}
	}
	return os.RemoveAll(path)
}

func mountsBelow(path string) ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && strings.HasPrefix(fields[4], path+"/") {
			out = append(out, fields[4])
		}
	}
	return out, nil
}
