package weir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// races is where a binary that was built with the race detector writes what it finds. Processes are
// many, they are killed and started again, and their logs go with the planes that they ran on: so
// it is one place for all.
var races struct {
	sync.Mutex
	dir string
}

// gatherRaces tells all processes that this one will start where to write reports. They go on after
// one: what they were started for is still tested.
func gatherRaces() error {
	races.Lock()
	defer races.Unlock()
	if races.dir != "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "weir-races-")
	if err != nil {
		return fmt.Errorf("make a place for reports of races: %w", err)
	}
	races.dir = dir
	return os.Setenv("GORACE", "halt_on_error=0 log_path="+filepath.Join(dir, "report"))
}

// Races returns an error with what the race detector has reported in any weir that this process
// started since Binary named it. To be called when they have ended, once for each call of Binary.
func Races() error {
	races.Lock()
	defer races.Unlock()
	if races.dir == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(races.dir, "report.*"))
	if err != nil {
		return fmt.Errorf("look for reports of races: %w", err)
	}
	var found strings.Builder
	for _, file := range files {
		report, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read a report of races: %w", err)
		}
		found.Write(report)
	}
	if err := os.RemoveAll(races.dir); err != nil {
		return fmt.Errorf("remove reports of races: %w", err)
	}
	races.dir = ""
	if found.Len() > 0 {
		return fmt.Errorf("find no data race in weir:\n%s", found.String())
	}
	return nil
}
