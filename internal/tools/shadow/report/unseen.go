package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-dev/weir/controller/words"
)

// name is what --accept takes for something that is not seen.
func (u Unseen) name() string { return "cannot see " + u.What }

// missing returns what is not seen and not accepted.
func (r *Report) missing(accepted []string) (out []Unseen) {
	for _, u := range r.Unseen {
		if !slices.Contains(accepted, u.name()) {
			out = append(out, u)
		}
	}
	return out
}

// compared returns for how long everything was seen and compared, except for what is accepted. Time
// in which something was not seen does not count.
func (r *Report) compared(accepted []string) time.Duration {
	seconds := r.ComparedSeconds
	for _, u := range r.missing(accepted) {
		seconds = min(seconds, u.ComparedSeconds)
	}
	return time.Duration(seconds * float64(time.Second))
}

// notSeen returns errors for what is not seen and closes the gate.
func (r *Report) notSeen(accepted []string) (errs []error) {
	missing := r.missing(accepted)
	for _, u := range missing[:min(len(missing), mostNamed)] {
		errs = append(errs, fmt.Errorf("cannot see %s (%s), and nothing of it is compared: repair that; to go on without "+
			"it, %s",
			words.Printable(u.What), words.Printable(u.Why), accept(u.name())))
	}
	if more := max(len(missing)-mostNamed, 0) + r.MoreUnseen; more > 0 {
		errs = append(errs, fmt.Errorf("cannot see %s", words.Count(more, "more kind", "more kinds")))
	}
	return errs
}

// drawUnseen prints what is not seen.
func (r *Report) drawUnseen(p *printer) {
	if len(r.Unseen)+r.MoreUnseen == 0 {
		return
	}
	p.line("Weir cannot see the following now, and compares nothing of it:")
	for _, u := range r.Unseen {
		p.line("  %s: %s", u.What, u.Why)
	}
	if r.MoreUnseen > 0 {
		p.line("  and %d more", r.MoreUnseen)
	}
}
