package load

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"

	"github.com/weir-dev/weir/e2e/plane"
)

// A Footprint is the memory of a process, in bytes.
type Footprint struct {
	RSS uint64
	// Heap is go_memstats_heap_inuse_bytes; 0 where it is not exported.
	Heap uint64

	collected time.Time // when garbage was last collected
}

const (
	// calm is how long a process is left alone after its first work before a
	// collection counts, and how long it is watched after that one.
	calm        = 5 * time.Second
	sampleEvery = 500 * time.Millisecond
)

// Settle returns the least that a process uses once it has collected its
// garbage: what it read at its start is not what it keeps. The Go runtime
// collects every two minutes even in an idle process, so atMost should be more
// than that; a process that says nothing of its collections is read at the end
// of that time.
func Settle(ctx context.Context, r *Running, atMost time.Duration) (Footprint, error) {
	started := time.Now()
	end := time.NewTimer(atMost)
	defer end.Stop()
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	var least Footprint
	var settled time.Time // when a collection was seen
	for {
		now, err := footprint(ctx, r)
		if err != nil {
			return least, err
		}
		if settled.IsZero() {
			least = now
			if now.collected.After(started.Add(calm)) {
				settled = time.Now()
			}
		}
		least.RSS, least.Heap = min(least.RSS, now.RSS), min(least.Heap, now.Heap)
		if !settled.IsZero() && time.Since(settled) > calm {
			return least, nil
		}
		select {
		case <-tick.C:
		case <-end.C:
			return least, nil
		case <-ctx.Done():
			return least, ctx.Err()
		}
	}
}

func footprint(ctx context.Context, r *Running) (Footprint, error) {
	rss, err := Resident(r.Child)
	if err != nil {
		return Footprint{}, err
	}
	text, err := r.Metrics(ctx)
	if err != nil {
		return Footprint{}, err
	}
	families, err := parseMetrics(text)
	if err != nil {
		return Footprint{}, err
	}
	f := Footprint{RSS: rss, Heap: uint64(gauge(families, "go_memstats_heap_inuse_bytes"))}
	if s := gauge(families, "go_memstats_last_gc_time_seconds"); s > 0 {
		f.collected = time.UnixMilli(int64(s * 1000))
	}
	return f, nil
}

// Resident is how much memory a process holds, in bytes.
func Resident(c *plane.Child) (uint64, error) {
	status, err := statusOf(c)
	return status.VmRSS, err
}

// Highest is how much memory a process held at the most since it began, in bytes.
func Highest(c *plane.Child) (uint64, error) {
	status, err := statusOf(c)
	return status.VmHWM, err
}

func statusOf(c *plane.Child) (procfs.ProcStatus, error) {
	p, err := procfs.NewProc(c.Pid())
	if err != nil {
		return procfs.ProcStatus{}, fmt.Errorf("find the process of %s: %w", c.Name, err)
	}
	status, err := p.NewStatus()
	if err != nil {
		return status, fmt.Errorf("read the memory of %s: %w", c.Name, err)
	}
	return status, nil
}
