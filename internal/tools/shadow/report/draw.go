package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/weir-dev/weir/controller/words"
)

// Draw prints a report for people.
func (r *Report) Draw(out io.Writer) error {
	p := &printer{out: out}
	p.line("Compared for %s, until %s.", r.compared(nil).Truncate(time.Second), r.At.UTC().Format(time.RFC3339))
	if !r.Ready {
		p.line("Not all kinds have been listed: much is in doubt.")
	}
	r.drawUnseen(p)
	r.drawObjects(p)
	if r.Forgotten > 0 {
		p.line("%d decisions were not compared, because too many were open.", r.Forgotten)
	}
	if r.ForgottenWrites > 0 {
		p.line("%d writes of owner references were not recorded, because there were too many at once: a difference that "+
			"one of them caused is not shown as on purpose.", r.ForgottenWrites)
	}
	if len(r.Differences)+r.More == 0 {
		p.line("No difference%s.", map[bool]string{true: " but those on purpose"}[len(r.OnPurpose) > 0])
	} else {
		p.line("")
		p.line("%s:", differences(len(r.Differences)+r.More))
		p.differences(r.Differences, r.More)
	}
	if n := len(r.OnPurpose) + r.MoreOnPurpose; n > 0 {
		p.line("")
		p.line("%s on purpose:", differences(n))
		p.differences(r.OnPurpose, r.MoreOnPurpose)
	}
	r.drawDeletes(p)
	return p.err
}

func (p *printer) differences(of []Difference, more int) {
	for _, d := range of {
		p.line("  %s: %s (%s; since %s)", d.Object, d.told(), d.Why, d.At.UTC().Format(time.RFC3339))
		if d.OnPurpose != "" {
			p.line("    on purpose: %s", d.OnPurpose)
		}
	}
	if more > 0 {
		p.line("  and %d more, which are in the log", more)
	}
}

// drawDeletes prints the differences on purpose that close a gate, and how to accept them.
func (r *Report) drawDeletes(p *printer) {
	of := r.deletesOnPurpose()
	if len(of) == 0 {
		return
	}
	p.line("")
	p.line("On purpose Weir would also delete what the cluster keeps. That closes the gate, unless it is accepted by " +
		"its name:")
	for _, name := range slices.Sorted(maps.Keys(of)) {
		p.line("  %d: %s", of[name].count, accept(name))
	}
}

func (r *Report) drawObjects(p *printer) {
	for _, verb := range slices.Sorted(maps.Keys(r.Decisions)) {
		of := r.Decisions[verb]
		p.line("%s: %d were carried out by the cluster, %d were withdrawn because of what was seen later, %d are open; "+
			"%d of all were late.", verb, of[Done], of[Withdrawn], of["open"], of[Late])
	}
	if lag := r.LagSeconds; r.Decisions["delete"][Done] > 0 {
		p.line("The cluster deleted %.1f s after Weir would have (median), 99 of 100 within %.1f s, the last after %.1f s.",
			lag.Median, lag.P99, lag.Most)
	}
	p.line("Of objects with owners, %d were deleted before Weir had decided the same, %d by users or controllers "+
		"while an owner lives.", r.Deletes[Sooner], r.Deletes[Others])
}

// told describes the difference in words.
func (d *Difference) told() string {
	switch {
	case d.What == Kept:
		return "it was deleted, and Weir would have kept it"
	case d.Ended != nil:
		return fmt.Sprintf("Weir would %s it, and the cluster did so, or Weir thought otherwise, %s later", d.Verb,
			d.Ended.Sub(d.At).Round(time.Second))
	}
	return "Weir would " + d.Verb + " it, and the cluster has not"
}

// printer keeps the first error. Text that others have chosen, such as the names of owners, stays
// in its line.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.out, words.Printable(fmt.Sprintf(format, args...)))
	}
}
