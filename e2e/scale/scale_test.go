//go:build full

package scale

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

// TestPopulationOnARealControlPlane makes one that is small: the API server takes an object of each kind, and whoever follows sees each go once.
func TestPopulationOnARealControlPlane(t *testing.T) {
	ctx := t.Context()
	p, err := plane.Start(ctx, plane.Options{Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, kind := range Custom() {
		if err := load.Define(ctx, p.Config, kind); err != nil {
			t.Fatal(err)
		}
	}
	before, err := ListAll(ctx, p.Config)
	if err != nil {
		t.Fatal(err)
	}
	const in, each = 3, 60
	var made, changed atomic.Int64
	all, err := Populate(ctx, p.Config, in, each, time.Now().Add(time.Minute), &made)
	if err != nil {
		t.Fatal(err)
	}
	if made.Load() != in*each || Count(all) != in*each {
		t.Errorf("%d objects were made, and %d are known; want %d", made.Load(), Count(all), in*each)
	}
	if n, err := ListAll(ctx, p.Config); err != nil || n != before+in*each {
		t.Errorf("%d objects, %v; before there were %d", n, err, before)
	}
	if took, err := Ask(ctx, p.Config, all, 5); err != nil || len(took) != 5 {
		t.Errorf("took %v, %v", took, err)
	}
	const touches, perSecond = 30, 100
	if _, err := Populate(ctx, p.Config, 1, each, time.Now(), &changed); err == nil || changed.Load() != 0 {
		t.Errorf("%d objects were made in no time: %v", changed.Load(), err)
	}
	n, took, err := Touch(ctx, p.Config, all[:1], touches, perSecond, time.Minute, &changed)
	if err != nil || n != touches || changed.Load() != touches || took < (touches-1)*time.Second/perSecond {
		t.Errorf("%d objects were changed in %s, and %d counted: %v", n, took, changed.Load(), err)
	}
	if n, _, err := Touch(ctx, p.Config, all[:1], touches, perSecond, 0, &changed); err != nil || n > 1 {
		t.Errorf("%d objects were changed in no time: %v", n, err)
	}
	all[1].Objects = all[1].Objects[:each-1] // as where the time was up
	const floor = 2*each - 1
	var ended []time.Time
	result, err := Floor(ctx, p.Config, all[1:], func(at time.Time) { ended = append(ended, at) })
	if err != nil || result.Dependents != floor || len(ended) != floor || result.Took <= 0 || result.First > result.Took {
		t.Errorf("%+v, and %d were seen to go: %v", result, len(ended), err)
	}
	limited, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	ended = nil
	if _, err := Cascade(limited, p.Config, all[:1], func(at time.Time) { ended = append(ended, at) }); err == nil || len(ended) > 1 {
		t.Errorf("%d went with a root where no collector runs: %v", len(ended), err)
	}
}
