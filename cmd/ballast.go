package cmd

import (
	"os"
	"runtime"
)

// ballastSize is the least heap size, in bytes, at which Go collects garbage.
const ballastSize = 64 << 20

// ballast makes Go collect garbage less often. A webhook holds little and makes much garbage. Go
// collects once there is as much garbage as live memory, which is every few hundred reviews, and
// each time walks all that is live. The ballast counts as live, and costs neither memory nor a
// walk: it is made when the process begins, of memory that was never used, and is never written.
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
	return make([]byte, ballastSize)
}
