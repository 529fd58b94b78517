package cmd

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

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

// ballastSize is the least heap size, in bytes, at which Go collects garbage.
const ballastSize = 64 << 20

// ballast makes Go collect garbage less often. A webhook holds little and makes much garbage. Go
// collects once there is as much garbage as live memory, which is every few hundred reviews, and
// each time walks all that is live. The ballast counts as live, and costs neither memory, because
// it is never written, nor a walk.
//
// BenchmarkGarbage of package webhook compares it with GOGC and GOMEMLIMIT (docs/benchmarks.md):
// each lowers the p99 of a review by a third. But GOGC=400 would keep four times the size of a
// large graph, and GOGC=off as much as the container's limit allows. If GOGC or GOMEMLIMIT is set,
// there is no ballast. It lasts until drop is called.
func ballast() (drop func()) {
	held := newBallast()
	return func() { runtime.KeepAlive(held) }
}

func newBallast() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	held := make([]byte, ballastSize)
	giveBack(held) // Go has zeroed it if the memory had been used before
	return held
}

const (
	// tidyEvery is how often a process checks its memory.
	tidyEvery = 20 * time.Second
	// quietBytes is the most that an idle process allocates between two checks.
	quietBytes = 32 << 20
	// worthBytes, and an eighth of the live heap besides, is the least that is worth giving back.
	worthBytes = 16 << 20
)

// heap is the Go runtime's memory, in bytes.
type heap struct {
	live      uint64 // in use after the last garbage collection
	objects   uint64 // in use now, garbage included
	idle      uint64 // free, kept for later allocations
	allocated uint64 // since the process began
}

func readHeap() heap {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return heap{s[0].Value.Uint64(), s[1].Value.Uint64(), s[2].Value.Uint64(), s[3].Value.Uint64()}
}

// looks are the last three readings of the heap, the newest first.
type looks [3]heap

// worthTidying reports whether an idle process holds much memory that it does not use. It also does
// so right after a busy time: how much of the memory has become garbage is known only by
// collecting.
func (l looks) worthTidying() bool {
	now := l[0]
	spare := now.idle
	if now.objects > now.live {
		spare += now.objects - now.live
	}
	return l.quiet(0) && (spare > worthBytes+now.live/8 || !l.quiet(1))
}

// quiet reports whether the process was idle between a reading and the one before it.
func (l looks) quiet(at int) bool { return l[at].allocated-l[at+1].allocated <= quietBytes }

// tidy gives memory back once the work is done that needed it, until ctx ends. By itself, the Go
// runtime collects garbage after two minutes, and keeps the memory of a cascade for the next one; a
// container's limit counts both.
func tidy(ctx context.Context) error {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for l := (looks{readHeap()}); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		l = looks{readHeap(), l[0], l[1]}
		if l.worthTidying() {
			debug.FreeOSMemory()
			l[0] = readHeap()
		}
	}
}
