package cmd

import (
	"errors"
	"math"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

func TestMemoryIsThatOfTheContainer(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	for name, c := range map[string]struct {
		limit uint64
		err   error
		set   string
		want  int64
	}{
		"a limit":           {limit: 1 << 30, want: 9 << 30 / 10},
		"none":              {err: memlimit.ErrNoLimit, want: math.MaxInt64},
		"not known":         {err: errors.New("no cgroup is there"), want: math.MaxInt64},
		"the user has said": {limit: 1 << 30, set: "1GiB", want: math.MaxInt64}, // what was said, Go has read at its start
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetMemoryLimit(math.MaxInt64)
			defer debug.SetMemoryLimit(before)
			if c.set != "" {
				t.Setenv("GOMEMLIMIT", c.set)
			}
			boundMemory(logr.Discard(), func() (uint64, error) { return c.limit, c.err })
			if got := debug.SetMemoryLimit(-1); got < c.want-1 || got > c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
