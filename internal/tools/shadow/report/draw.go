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
	p.line("Compared for %s, until %s.", r.compared().Truncate(time.Second), r.At.UTC().Format(time.RFC3339))
	if !r.Ready {
		p.line("Not all kinds have been listed: much is in doubt.")
	}
	if len(r.Unseen) > 0 {
		p.line("Weir cannot see the following now, and compares nothing of it:")
	}
	for _, u := range r.Unseen {
		p.line("  %s: %s", u.What, u.Why)
	}
	r.drawObjects(p)
	unexplained := r.Unexplained()
	if unexplained == 0 {
		p.line("No difference%s.", map[bool]string{true: " but those on purpose"}[len(r.Differences) > 0])
	} else {
		p.line("")
		p.line("%s:", words.Count(unexplained, "difference", "differences"))
		p.differences(r.Differences, false)
	}
	if r.More > 0 {
		p.line("  and %d more, which there was no room for; the log may name them", r.More)
	}
	if n := len(r.Differences) - unexplained + r.More; n > 0 {
		p.line("")
		p.line("%s on purpose:", words.Count(n, "difference", "differences"))
		p.differences(r.Differences, true)
	}
	return p.err
}

func (p *printer) differences(of []Difference, onPurpose bool) {
	for i := range of {
		d := &of[i]
		if (d.OnPurpose != "") != onPurpose {
			continue
		}
		p.line("  %s: %s (%s; since %s)", d.Object, d.told(), d.Why, d.At.UTC().Format(time.RFC3339))
		if onPurpose {
			p.line("    on purpose: %s", d.OnPurpose)
		}
	}
}

func (r *Report) drawObjects(p *printer) {
	for _, verb := range slices.Sorted(maps.Keys(r.Decisions)) {
		of := r.Decisions[verb]
		p.line("%s: %d were carried out by the cluster, %d were withdrawn because of what was seen later, %d are open; "+
			"%d of all were late.", verb, of[Done], of[Withdrawn], of["open"], of[Late])
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
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = words.Printable(text)
		}
	}
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}
