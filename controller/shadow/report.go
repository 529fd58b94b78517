package shadow

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Report is what a Ledger tells at a moment.
type Report struct {
	Since time.Time `json:"since"`
	At    time.Time `json:"at"`
	// Ready tells whether all kinds have been listed: before that much is in doubt.
	Ready bool `json:"ready"`
	// Decisions are counted by verb (delete, release, unblock, unfinalize) and by what became of them: done, withdrawn, late (which is
	// counted besides) and open.
	Decisions map[string]map[string]int `json:"decisions"`
	// Deletes of objects with owners that Weir had not decided: sooner, others and kept.
	Deletes map[string]int `json:"deletes"`
	// LagSeconds are how much later than Weir's decision deletes came.
	LagSeconds struct {
		Median float64 `json:"median"`
		P99    float64 `json:"p99"`
		Most   float64 `json:"most"`
	} `json:"lagSeconds"`
	Differences []Difference `json:"differences"`
	More        int          `json:"more,omitempty"`      // differences that are only counted
	Forgotten   int          `json:"forgotten,omitempty"` // decisions that were not compared, because too many were open
}

// Report copies what is known.
func (l *Ledger) Report(now time.Time, ready bool) Report {
	r := Report{Since: l.Since, At: now, Ready: ready, Decisions: map[string]map[string]int{}, Deletes: maps.Clone(l.unasked), Differences: []Difference{}, More: l.more, Forgotten: l.forgotten}
	for verb, of := range l.counts {
		r.Decisions[verb] = maps.Clone(of)
	}
	for _, d := range l.open {
		verb := d.action.Verb.String()
		if r.Decisions[verb] == nil {
			r.Decisions[verb] = map[string]int{}
		}
		r.Decisions[verb]["open"]++
	}
	for _, d := range l.differences {
		r.Differences = append(r.Differences, *d)
	}
	if lags := slices.Sorted(slices.Values(l.lags)); len(lags) > 0 {
		r.LagSeconds.Median = lags[len(lags)/2].Seconds()
		r.LagSeconds.P99 = lags[len(lags)*99/100].Seconds()
		r.LagSeconds.Most = lags[len(lags)-1].Seconds()
	}
	return r
}

// fresh is how old a report may be of a process that runs.
const fresh = time.Minute

// Gate is nil if for a time nothing was different, and what stands in the way if not.
func (r *Report) Gate(now time.Time, lasted time.Duration) error {
	var errs []error
	if age := now.Sub(r.At); age > fresh {
		errs = append(errs, fmt.Errorf("the report is %s old: its process does not run any more", age.Round(time.Second)))
	}
	if !r.Ready {
		errs = append(errs, errors.New("not all kinds have been listed"))
	}
	if since := r.At.Sub(r.Since); since < lasted {
		errs = append(errs, fmt.Errorf("it has compared for %s, and not for %s yet", since.Round(time.Second), lasted))
	}
	if n := len(r.Differences) + r.More; n > 0 {
		errs = append(errs, errors.New(differences(n)))
	}
	if r.Forgotten > 0 {
		errs = append(errs, fmt.Errorf("%d decisions were not compared, because too many were open", r.Forgotten))
	}
	return errors.Join(errs...)
}

func differences(n int) string {
	if n == 1 {
		return "1 difference"
	}
	return fmt.Sprintf("%d differences", n)
}

// Draw writes a report for people.
func (r *Report) Draw(out io.Writer) error {
	p := &printer{out: out}
	p.line("Compared for %s, until %s.", r.At.Sub(r.Since).Round(time.Second), r.At.UTC().Format(time.RFC3339))
	if !r.Ready {
		p.line("Not all kinds have been listed: much is in doubt.")
	}
	for _, verb := range slices.Sorted(maps.Keys(r.Decisions)) {
		of := r.Decisions[verb]
		p.line("%s: %d were carried out by the cluster, %d were withdrawn because of what was seen later, %d are open; %d of all were late.", verb, of[Done], of[Withdrawn], of["open"], of[Late])
	}
	if r.Decisions["delete"][Done] > 0 {
		p.line("The cluster deleted %.1f s after Weir would have (median), 99 of 100 within %.1f s, the last after %.1f s.", r.LagSeconds.Median, r.LagSeconds.P99, r.LagSeconds.Most)
	}
	p.line("Of objects with owners, %d were deleted before Weir had decided the same, %d by users or controllers while an owner lives.", r.Deletes[Sooner], r.Deletes[Others])
	if r.Forgotten > 0 {
		p.line("%d decisions were not compared, because too many were open.", r.Forgotten)
	}
	if len(r.Differences)+r.More == 0 {
		p.line("No difference.")
		return p.err
	}
	p.line("\n%s:", differences(len(r.Differences)+r.More))
	for _, d := range r.Differences {
		what := "Weir would " + d.Verb + " it, and the cluster has not"
		if d.What == Kept {
			what = "it was deleted, and Weir would have kept it"
		} else if d.Ended != nil {
			what = fmt.Sprintf("Weir would %s it, and the cluster did so, or Weir thought otherwise, %s later", d.Verb, d.Ended.Sub(d.At).Round(time.Second))
		}
		p.line("  %s: %s (%s; since %s)", d.Object, what, d.Why, d.At.UTC().Format(time.RFC3339))
	}
	if r.More > 0 {
		p.line("  and %d more, which are in the log", r.More)
	}
	return p.err
}

// printer keeps the first error.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}
