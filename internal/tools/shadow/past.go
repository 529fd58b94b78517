package shadow

import (
	"slices"
	"time"

	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// mostSteps is how many steps of one decision are kept: the first and the last.
const mostSteps = 8

// past is the history of a decision.
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

// into copies the history into a difference. The copy never changes, because reports share it.
func (p *past) into(d *report.Difference) {
	if d != nil {
		d.History, d.Skipped = slices.Clone(p.steps), p.skipped
	}
}
