package load

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine says on what is measured: "2 cores, 24 GiB, kernel 6.18, go1.26.8".
func Machine() string {
	return fmt.Sprintf("%d cores, %s, kernel %s, %s", runtime.NumCPU(), totalMemory(), kernel(), runtime.Version())
}

// totalMemory and kernel say what rates depend on; neither names the machine,
// and what comes after the kernel's version often does.
func totalMemory() string {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "memory unknown"
	}
	var kb float64
	if _, err := fmt.Sscanf(string(data), "MemTotal: %f kB", &kb); err != nil {
		return "memory unknown"
	}
	return fmt.Sprintf("%.0f GiB", kb/(1<<20))
}

func kernel() string {
	data, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	version, _, _ := strings.Cut(strings.TrimSpace(string(data)), "-")
	return version
}
