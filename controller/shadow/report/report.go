package report

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Drain is the verb of what is told of namespaces.
const Drain = "drain"

// What became of a decision.
const (
	Done      = "done"      // somebody carried it out
	Withdrawn = "withdrawn" // what was seen later says otherwise
	Late      = "late"      // nobody has carried it out for long: a difference
)

// What became of objects with owners that were deleted without a decision to do so, and of namespaces that went before Weir would have let them.
const (
	Sooner = "sooner" // Weir would have deleted it too, and had not decided yet, or not found out about an owner, or what is in it
	Others = "others" // an owner of it lives, or can never be told: a user or a controller deleted it
	Kept   = "kept"   // Weir kept it, in doubt, and no owner of it is known to live, or it was not empty: a difference
)

// Refused is what became of a namespace's content that the cluster's namespace controller tried to delete, and may not: as Weir would
// have, and would not have been let, either.
const Refused = "refused"

// Report is what was found until a moment.
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
	// OnPurpose are the differences in which Weir is not as kube-controller-manager on purpose. They do not close a gate.
	OnPurpose     []Difference `json:"onPurpose,omitempty"`
	More          int          `json:"more,omitempty"`          // differences that are only counted
	MoreOnPurpose int          `json:"moreOnPurpose,omitempty"` // the same, of those on purpose
	Forgotten     int          `json:"forgotten,omitempty"`     // decisions that were not compared, because too many were open
}

// Difference is something that Weir would do and nobody did, or that somebody did and Weir would not do.
type Difference struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"` // Late or Kept
	Verb   string    `json:"verb"`
	Object string    `json:"object"`
	UID    types.UID `json:"uid"`
	Why    string    `json:"why"`
	// OnPurpose is in what Weir differs from kube-controller-manager on purpose, by the name that DESIGN.md has for it; empty: the difference has
	// no explanation.
	OnPurpose string `json:"onPurpose,omitempty"`
	// History is what was decided and seen, the first and the last of it; Skipped is how much was in between.
	History []Step `json:"history,omitempty"`
	Skipped int    `json:"skipped,omitempty"`
	// Ended is when the decision was carried out after all, or withdrawn; nil: not yet.
	Ended *time.Time `json:"ended,omitempty"`
}

// Step is one thing of a history.
type Step struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
}

// Lag is in seconds.
type Lag struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Most   float64 `json:"most"`
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
