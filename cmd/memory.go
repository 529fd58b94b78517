package cmd

import (
	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

// ofTheLimit is the share of a container's memory at which Go collects garbage more often. The rest
// is for memory that Go does not count.
const ofTheLimit = 0.9

// boundMemory makes Go collect garbage before the process reaches the memory limit of its
// container. GOMEMLIMIT takes precedence; without a limit nothing is set.
func boundMemory(log logr.Logger, limit memlimit.Provider) {
	bytes, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithRatio(ofTheLimit), memlimit.WithProvider(limit))
	switch {
	case err != nil:
		log.Info("the limit of this container's memory is not known", "err", err.Error())
	case bytes > 0:
		log.Info("memory is bounded", "bytes", bytes)
	}
}
