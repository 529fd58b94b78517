package scale

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// A Sample is what there is to see at a time.
type Sample struct {
	At    time.Time
	Phase string
	// Made, Changed and Deleted count objects since the beginning.
	Made, Changed, Deleted int64
	// Memory is how many bytes a process holds, by its name; Heap what weir's uses of it.
	Memory map[string]uint64
	Heap   uint64
}

// A Sampler takes a sample each second.
type Sampler struct {
	// Made, Changed and Deleted are counted by whoever does that. What weir deletes is read from
	// its metrics.
	Made, Changed, Deleted atomic.Int64

	mu      sync.Mutex
	phase   string
	parts   []*plane.Child
	running []*load.Running // by place: weir, standby
	deletes map[*load.Running]int64
	samples []Sample
	done    sync.WaitGroup
	stop    context.CancelFunc
}

// names are those of what may be running, by place.
var names = []string{"weir", "standby"}

// NewSampler begins to take samples, of these processes and of what is given to it later.
func NewSampler(ctx context.Context, parts ...*plane.Child) *Sampler {
	s := &Sampler{parts: parts, running: make([]*load.Running, len(names)), deletes: map[*load.Running]int64{}}
	ctx, s.stop = context.WithCancel(ctx)
	s.done.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.take(ctx)
			}
		}
	})
	return s
}

// Phase names what is done from now on.
func (s *Sampler) Phase(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = name
}

// Follow has samples of a weir taken, at a place: 0, or 1 for its standby. Nil: of none.
func (s *Sampler) Follow(place int, r *load.Running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[place] = r
}

// take leaves out what cannot be read: a process may have ended.
func (s *Sampler) take(ctx context.Context) {
	s.mu.Lock()
	x := Sample{At: time.Now(), Phase: s.phase, Made: s.Made.Load(), Changed: s.Changed.Load(), Deleted: s.Deleted.Load(), Memory: map[string]uint64{}}
	running := slices.Clone(s.running)
	s.mu.Unlock()
	for _, c := range s.parts {
		if rss, err := load.Resident(c); err == nil {
			x.Memory[c.Name] = rss
		}
	}
	for place, r := range running {
		if r == nil {
			continue
		}
		if rss, err := load.Resident(r.Child); err == nil {
			x.Memory[names[place]] = rss
		}
		if heap, deletes, err := said(ctx, r); err == nil {
			s.deletes[r] = deletes
			if place == 0 {
				x.Heap = heap
			}
		}
	}
	for _, n := range s.deletes {
		x.Deleted += n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = append(s.samples, x)
}

// said is what a weir tells of itself: its heap, and how many objects it has deleted.
func said(ctx context.Context, r *load.Running) (heap uint64, deletes int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	text, err := r.Metrics(ctx)
	if err != nil {
		return 0, 0, err
	}
	m, err := weir.ParseMetrics(text)
	if err != nil {
		return 0, 0, err
	}
	return uint64(m.Sum("go_memstats_heap_inuse_bytes")), int64(m.Sum("weir_deletes_total", "result", "ok")), nil
}

// Of are the samples of a phase, as far as they were taken.
func (s *Sampler) Of(phase string) (of []Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.samples {
		if x.Phase == phase {
			of = append(of, x)
		}
	}
	return of
}

// Stop ends it, and returns what was taken.
func (s *Sampler) Stop() []Sample {
	s.stop()
	s.done.Wait()
	return s.samples
}

// WriteCSV writes samples as a table, with rates instead of counts: seconds since the first, phase,
// objects made, changed and deleted a second, and the memory of each process in MB. Where a process
// did not run, it leaves a field empty.
func WriteCSV(out io.Writer, samples []Sample, processes []string) error {
	w := csv.NewWriter(out)
	head := append([]string{"seconds", "phase", "made", "changed", "deleted"}, processes...)
	if err := w.Write(append(head, "weir heap")); err != nil {
		return fmt.Errorf("write samples: %w", err)
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
	megabytes := func(bytes uint64) string {
		if bytes == 0 {
			return ""
		}
		return number(float64(bytes) / 1e6)
	}
	for i, x := range samples {
		row := []string{number(x.At.Sub(samples[0].At).Seconds()), x.Phase}
		before := samples[max(0, i-1)]
		for _, n := range []int64{x.Made - before.Made, x.Changed - before.Changed, x.Deleted - before.Deleted} {
			row = append(row, number(Rate(n, x.At.Sub(before.At))))
		}
		for _, p := range processes {
			row = append(row, megabytes(x.Memory[p]))
		}
		if err := w.Write(append(row, megabytes(x.Heap))); err != nil {
			return fmt.Errorf("write samples: %w", err)
		}
	}
	w.Flush()
	return w.Error()
}

// Last is the latest sample, if there is one.
func (s *Sampler) Last() (Sample, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.samples) == 0 {
		return Sample{}, false
	}
	return s.samples[len(s.samples)-1], true
}
