package load

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"

	"github.com/weir-dev/weir/e2e/plane"
)

// CPU is how many seconds of processor time a process has taken.
func CPU(c *plane.Child) (float64, error) {
	p, err := procfs.NewProc(c.Pid())
	if err != nil {
		return 0, fmt.Errorf("find the process of %s: %w", c.Name, err)
	}
	stat, err := p.Stat()
	if err != nil {
		return 0, fmt.Errorf("read what %s has taken: %w", c.Name, err)
	}
	return stat.CPUTime(), nil
}

const (
	// Digest is how long the API server is left alone between making the objects and deleting them.
	// Without it the floor, which needs no start of a process, would run while the server still
	// digests, and look worse than it is.
	Digest = 2 * time.Second
	// idleFor is how long a process is looked at that has nothing to do.
	idleFor = 5 * time.Second
)

// Spent is what a process takes of CPU while something is done as often as do returns, in
// microseconds each, beyond what it takes when nothing is done. It is given time before that and
// after it.
func Spent(ctx context.Context, r *Running, do func() (n int, err error)) (float64, error) {
	if err := Pause(ctx, Digest); err != nil {
		return 0, err
	}
	idle, pause, err := taken(r, func() error { return Pause(ctx, idleFor) })
	if err != nil {
		return 0, err
	}
	var n int
	busy, took, err := taken(r, func() (err error) {
		if n, err = do(); err != nil {
			return err
		}
		return Pause(ctx, Digest)
	})
	return (busy - idle*took/pause) / float64(max(n, 1)) * 1e6, err
}

// taken is what a process takes of CPU while something is done, and how long that took, in seconds.
func taken(r *Running, do func() error) (cpu, took float64, err error) {
	started := time.Now()
	before, err := CPU(r.Child)
	if err == nil {
		err = do()
	}
	if err != nil {
		return 0, 0, err
	}
	after, err := CPU(r.Child)
	return after - before, time.Since(started).Seconds(), err
}
