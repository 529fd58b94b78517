package shadow

import (
	"slices"
	"time"

	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// mostSteps is how many steps of one decision are kept: the first ones, and the last.
const mostSteps = 8

// past is what has become of a decision so far.
type past struct {
	steps   []report.Step
	skipped int
}

func (p *past) add(now time.Time, what string) {
	if len(p.steps) == mostSteps {
		p.steps = slices.Delete(p.steps, mostSteps/2, mostSteps/2+1)
		p.skipped++
	}
	p.steps = append(p.steps, report.Step{At: now, What: bounded(what, mostWhat)})
}

// into has a difference tell of it. What a difference has of it does not change any more: reports
// share it.
func (p *past) into(d *report.Difference) {
	if d != nil {
		d.History, d.Skipped = slices.Clone(p.steps), p.skipped
	}
}
