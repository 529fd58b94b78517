package shadow

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

func (l *lags) told() report.Lag {
	sorted := slices.Sorted(slices.Values(l.all))
	if len(sorted) == 0 {
		return report.Lag{}
	}
	return report.Lag{Median: sorted[len(sorted)/2].Seconds(), P99: sorted[len(sorted)*99/100].Seconds(),
		Most: sorted[len(sorted)-1].Seconds()}
}

// Report returns a copy of what is recorded.
func (l *Ledger) Report(now time.Time, ready bool) report.Report {
	r := report.Report{Since: l.Since, At: now, Ready: ready, Decisions: map[string]map[string]int{},
		Deletes: maps.Clone(l.unasked), Differences: copied(l.differences), OnPurpose: copied(l.purposely),
		More: l.more, MoreOnPurpose: l.moreOfThose, MoreDeletes: maps.Clone(l.moreDeletes), Forgotten: l.forgotten,
		ForgottenWrites: l.unwritten}
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
	r.LagSeconds = l.deletes.told()
	l.sight.into(&r)
	return r
}

// copied returns copies of differences.
func copied(from []*report.Difference) []report.Difference {
	out := make([]report.Difference, 0, len(from))
	for _, d := range from {
		out = append(out, *d)
	}
	return out
}
