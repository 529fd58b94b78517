package load

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
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

// Weigh returns what a process uses now.
func Weigh(ctx context.Context, r *Running) (Footprint, error) { return footprint(ctx, r) }

func footprint(ctx context.Context, r *Running) (Footprint, error) {
	rss, err := residentSize(r.Pid())
	if err != nil {
		return Footprint{}, fmt.Errorf("read the memory of %s: %w", r.Name, err)
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

// residentSize is VmRSS of /proc/PID/status.
func residentSize(pid int) (uint64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "VmRSS:" {
			kb, err := strconv.ParseUint(fields[1], 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("no VmRSS in the status of process %d", pid)
}
