package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

const (
	// leftAfter is how long a system is left alone when all has been made, and when all has been
	// deleted.
	leftAfter = time.Minute
	// settleTime is how long to wait at most for a process to collect its garbage: the Go runtime
	// collects every two minutes even in an idle process.
	settleTime = 150 * time.Second
	// calm is how long a process is left alone after its first work before a collection counts, and
	// how long it is watched after that one.
	calm        = 5 * time.Second
	sampleEvery = 500 * time.Millisecond
)

// weight is what a system needs to know a cluster.
type weight struct {
	rss   uint64
	awake time.Duration // from the start of the process to its first work
	ready time.Duration // and until it says that it is ready, where that is known
	peak  uint64        // the most that it held until its first work
}

// measureMemory weighs each system in a cluster with nothing in it, and in a full one.
func (b *bench) measureMemory(ctx context.Context) error {
	empty := map[string]weight{}
	for _, s := range b.systems {
		w, err := b.weigh(ctx, s)
		if err != nil {
			return err
		}
		empty[s.name] = w
		b.note(s.name+", empty", w.figures(weight{}, 1)...)
	}
	if err := b.fill(ctx); err != nil {
		return err
	}
	for _, s := range b.systems {
		w, err := b.weigh(ctx, s)
		if err != nil {
			return err
		}
		b.note(fmt.Sprintf("%s, %d objects", s.name, b.filled()), w.figures(empty[s.name], b.filled())...)
	}
	return nil
}

// fill fills the cluster, once. What it is filled with stays.
func (b *bench) fill(ctx context.Context) (err error) {
	if b.full == nil {
		b.say("making %d objects", b.many)
		b.full, err = load.Populate(ctx, b.Config, load.Tree(b.many))
	}
	return err
}

// filled is how many objects the cluster is filled with.
func (b *bench) filled() int { return len(b.full.Dependents) + 1 }

func (b *bench) weigh(ctx context.Context, s system) (w weight, err error) {
	err = b.while(ctx, s, func(r *running, awake time.Duration) (err error) {
		w.awake, w.ready = awake, r.ready
		if _, w.peak, err = memoryOf(r.Child); err == nil {
			w.rss, err = settle(ctx, r)
		}
		return err
	})
	return w, err
}

// figures are those of n objects, above what is held without them.
func (w weight) figures(empty weight, n int) []figure {
	return []figure{{"RSS, MB", mb(w.rss)}, {"each, B", (float64(w.rss) - float64(empty.rss)) / float64(n)},
		{"RSS while starting, of it", float64(w.peak) / float64(w.rss)}, {"first work after, s", w.awake.Seconds()}}
}

// measureLeft makes objects while a system runs, leaves it alone for a minute, has it delete them,
// and leaves it alone for another.
func (b *bench) measureLeft(ctx context.Context) error {
	for _, s := range b.systems {
		err := b.while(ctx, s, func(r *running, _ time.Duration) error { return b.leftBy(ctx, s, r) })
		if err != nil {
			return fmt.Errorf("by %s: %w", s.name, err)
		}
	}
	return nil
}

func (b *bench) leftBy(ctx context.Context, s system, r *running) (err error) {
	var p *load.Population
	var figures []figure
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"RSS before, MB", func() error { return nil }},
		{fmt.Sprintf("with %d objects", b.many), func() (err error) {
			p, err = load.Populate(ctx, b.Config, load.Tree(b.many))
			return err
		}},
		{"a minute later", func() error { return pause(ctx, leftAfter) }},
		{"a minute after they were deleted", func() error {
			_, err := b.cascade(ctx, b.admin, p, background)
			if err == nil {
				err = pause(ctx, leftAfter)
			}
			return err
		}},
	} {
		if err := step.do(); err != nil {
			return err
		}
		rss, _, err := memoryOf(r.Child)
		if err != nil {
			return err
		}
		figures = append(figures, figure{step.name, mb(rss)})
	}
	b.note(s.name, figures...)
	return nil
}

// settle returns the least that a process uses once it has collected its garbage: what it read at
// its start is not what it keeps. One that says nothing of its collections is read for settleTime.
func settle(ctx context.Context, r *running) (least uint64, err error) {
	started := time.Now()
	var settled time.Time // when a collection was seen
	for time.Since(started) < settleTime && (settled.IsZero() || time.Since(settled) <= calm) {
		rss, _, err := memoryOf(r.Child)
		if err != nil {
			return 0, err
		}
		m, err := r.metrics(ctx)
		if err != nil {
			return 0, err
		}
		collected := time.UnixMilli(int64(m.Sum("go_memstats_last_gc_time_seconds") * 1000))
		if settled.IsZero() {
			least = rss
			if collected.After(started.Add(calm)) {
				settled = time.Now()
			}
		}
		least = min(least, rss)
		if err := pause(ctx, sampleEvery); err != nil {
			return 0, err
		}
	}
	return least, nil
}

// memoryOf is how much memory a process holds, and held at the most since it began, in bytes.
func memoryOf(c *plane.Child) (now, most uint64, err error) {
	p, err := procfs.NewProc(c.Pid())
	if err != nil {
		return 0, 0, fmt.Errorf("find the process of %s: %w", c.Name, err)
	}
	status, err := p.NewStatus()
	return status.VmRSS, status.VmHWM, err
}

// peak is how much memory a process holds before something is done, and at the most while it is.
func peak(c *plane.Child, do func() error) (before, most uint64, err error) {
	// From here on the kernel keeps the highest again (proc_pid_clear_refs(5)).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.Pid()), []byte("5"), 0); err != nil {
		return 0, 0, fmt.Errorf("reset the highest memory of %s: %w", c.Name, err)
	}
	before, _, err = memoryOf(c)
	if err == nil {
		err = do()
	}
	if err == nil {
		_, most, err = memoryOf(c)
	}
	return before, most, err
}

// cpuOf is how many seconds of processor time a process has taken.
func cpuOf(c *plane.Child) (float64, error) {
	p, err := procfs.NewProc(c.Pid())
	if err != nil {
		return 0, fmt.Errorf("find the process of %s: %w", c.Name, err)
	}
	stat, err := p.Stat()
	return stat.CPUTime(), err
}
