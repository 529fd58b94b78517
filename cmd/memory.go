package cmd

import (
	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

// ofTheLimit is how much of a container's memory is used before Go collects garbage more often than
// it would: what is left is for what Go does not count.
const ofTheLimit = 0.9

// boundMemory has Go collect garbage rather than have the process killed at the limit of its
// container. What GOMEMLIMIT says goes first, and where there is no limit there is none.
func boundMemory(log logr.Logger, limit memlimit.Provider) {
	bytes, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithRatio(ofTheLimit), memlimit.WithProvider(limit))
	switch {
	case err != nil:
		log.Info("the limit of this container's memory is not known", "err", err.Error())
	case bytes > 0:
		log.Info("memory is bounded", "bytes", bytes)
	}
}
