package cmd

import (
	"os"
	"runtime"
)

// ballastSize is how many bytes of garbage there may be before any is collected, at least.
const ballastSize = 64 << 20

// ballast has less garbage collected at a time, and more of it. A webhook holds little and makes a
// lot of garbage: Go collects when there is as much of it as of what is held, which is every few
// hundred reviews, and each time walks through all that is held. The ballast counts as held, and
// costs nothing else: no memory, because it is never written, and no walk. BenchmarkGarbage of
// package webhook compares it with GOGC and GOMEMLIMIT (docs/benchmarks.md): p99 of a review falls
// by a third with each of them. But GOGC=400 would keep four times of what a large graph holds, and
// GOGC=off as much as the limit of the container allows. Whoever sets GOGC or GOMEMLIMIT gets what
// they set, and no ballast. It lasts until drop is called.
func ballast() (drop func()) {
	held := newBallast()
	return func() { runtime.KeepAlive(held) }
}

func newBallast() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	held := make([]byte, ballastSize)
	giveBack(held) // Go has written zeros to it, where it took memory that had been used before
	return held
}
