package shadow

import (
	"errors"
	"fmt"
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
	// Decisions are counted by verb (delete, release, unblock, unfinalize, and drain for a namespace that is being deleted) and by what became
	// of them: done, withdrawn, late (which is counted besides) and open; of namespaces also sooner, kept, and refused (counted besides).
	Decisions map[string]map[string]int `json:"decisions"`
	// Deletes of objects with owners that Weir had not decided: sooner, others and kept.
	Deletes map[string]int `json:"deletes"`
	// LagSeconds are how much later than Weir's decision deletes came.
	LagSeconds Lag `json:"lagSeconds"`
	// NamespaceLagSeconds are how long namespaces stayed in which nothing was left.
	NamespaceLagSeconds Lag          `json:"namespaceLagSeconds"`
	Differences         []Difference `json:"differences"`
	More                int          `json:"more,omitempty"`      // differences that are only counted
	Forgotten           int          `json:"forgotten,omitempty"` // decisions that were not compared, because too many were open
}

// Lag is in seconds.
type Lag struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Most   float64 `json:"most"`
}

func (l *lags) told() Lag {
	sorted := slices.Sorted(slices.Values(l.all))
	if len(sorted) == 0 {
		return Lag{}
	}
	return Lag{Median: sorted[len(sorted)/2].Seconds(), P99: sorted[len(sorted)*99/100].Seconds(), Most: sorted[len(sorted)-1].Seconds()}
}

// Report copies what is known.
func (l *Ledger) Report(now time.Time, ready bool) Report {
	r := Report{Since: l.Since, At: now, Ready: ready, Decisions: map[string]map[string]int{}, Deletes: maps.Clone(l.unasked), Differences: []Difference{}, More: l.more, Forgotten: l.forgotten}
	for verb, of := range l.counts {
		r.Decisions[verb] = maps.Clone(of)
	}
	open := func(verb string) {
		if r.Decisions[verb] == nil {
			r.Decisions[verb] = map[string]int{}
		}
		r.Decisions[verb]["open"]++
	}
	for _, d := range l.open {
		open(d.action.Verb.String())
	}
	for _, s := range l.spaces {
		if !s.done {
			open(drained)
		}
	}
	for _, d := range l.differences {
		r.Differences = append(r.Differences, *d)
	}
	r.LagSeconds, r.NamespaceLagSeconds = l.deletes.told(), l.drains.told()
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
