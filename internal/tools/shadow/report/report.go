package report

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Drain is the verb of what is told of namespaces.
const Drain = "drain"

// deletes is the verb of what collects, unfinalizes of what ends the deletion of an owner.
const deletes, unfinalizes = "delete", "unfinalize"

// What became of a decision.
const (
	Done      = "done"      // a client carried it out
	Withdrawn = "withdrawn" // what was seen later says otherwise, or its object is not followed any more
	Late      = "late"      // no client has carried it out for long: a difference
)

// What became of objects with owners that were deleted without a decision to do so, and of
// namespaces that went before Weir would have let them.
const (
	Sooner = "sooner" // Weir would have deleted it too, and had not decided yet, or not found out about an owner, or what is in it
	Others = "others" // an owner of it lives, or can never be determined: a user or a controller deleted it
	Kept   = "kept"   // Weir kept it, in doubt, and no owner of it is known to live, or it was not empty: a difference
)

// Refused is what became of a namespace's content that the cluster's namespace controller tried to
// delete, and may not: as Weir would have, and would not have been let, either.
const Refused = "refused"

// Report is what was found until a moment.
type Report struct {
	Since time.Time `json:"since"`
	At    time.Time `json:"at"`
	// ComparedSeconds is for how long of that the process compared: a clock that is set, and a
	// machine that sleeps, add nothing. nil: the weir that wrote the report is older, and that is
	// not known.
	ComparedSeconds *float64 `json:"comparedSeconds,omitempty"`
	// Unseen is what Weir cannot see now: it compares nothing of that. MoreUnseen are only counted.
	Unseen     []Unseen `json:"unseen,omitempty"`
	MoreUnseen int      `json:"moreUnseen,omitempty"`
	// Faults is how many objects Weir had wrong, as its comparisons with the API found. What it
	// decided by them, it decided wrongly.
	Faults int `json:"faults,omitempty"`
	// Ready tells whether all kinds have been listed: before that much is in doubt.
	Ready bool `json:"ready"`
	// Decisions are counted by verb (delete, release, unblock, unfinalize, and drain for a
	// namespace that is being deleted) and by what became of them: done, withdrawn, late (which is
	// counted besides) and open; of namespaces also sooner, kept, and refused (counted besides).
	Decisions map[string]map[string]int `json:"decisions"`
	// Deletes of objects with owners that Weir had not decided: sooner, others and kept.
	Deletes map[string]int `json:"deletes"`
	// LagSeconds are how much later than Weir's decision deletes came.
	LagSeconds Lag `json:"lagSeconds"`
	// NamespaceLagSeconds are how long namespaces stayed in which nothing was left.
	NamespaceLagSeconds Lag          `json:"namespaceLagSeconds"`
	Differences         []Difference `json:"differences"`
	// OnPurpose are the differences in which Weir is not as kube-controller-manager on purpose.
	// Those that delete close a gate that does not accept them.
	OnPurpose     []Difference `json:"onPurpose,omitempty"`
	More          int          `json:"more,omitempty"`          // differences that are only counted
	MoreOnPurpose int          `json:"moreOnPurpose,omitempty"` // the same, of those on purpose
	// MoreDeletes are those of MoreOnPurpose that delete, by their OnPurpose.
	MoreDeletes map[string]int `json:"moreDeletes,omitempty"`
	Forgotten   int            `json:"forgotten,omitempty"` // decisions that were not compared, because too many were open
	// ForgottenWrites are writes of references by which a difference would be known to be on
	// purpose, and that were not remembered, because there were too many at once: such a difference
	// has no explanation.
	ForgottenWrites int `json:"forgottenWrites,omitempty"`
}

// Unseen is a kind that is not seen, or a group version of which it is not known which kinds it
// has.
type Unseen struct {
	What string `json:"what"`
	Why  string `json:"why"`
	// ComparedSeconds is how much of the report's ComparedSeconds was over when it was last seen:
	// the time since then counts for who accepts that it is not.
	ComparedSeconds float64 `json:"comparedSeconds"`
}

// Difference is something that Weir would do and no client did, or that a client did and Weir would
// not do.
type Difference struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"` // Late or Kept
	Verb   string    `json:"verb"`
	Object string    `json:"object"`
	UID    types.UID `json:"uid"`
	Why    string    `json:"why"`
	// OnPurpose is in what Weir differs from kube-controller-manager on purpose, by the name that
	// DESIGN.md has for it; empty: the difference has no explanation.
	OnPurpose string `json:"onPurpose,omitempty"`
	// History is what was decided and seen, the first and the last of it; Skipped is how much was
	// in between.
	History []Step `json:"history,omitempty"`
	Skipped int    `json:"skipped,omitempty"`
	// Ended is when the decision was carried out after all, or withdrawn; nil: not yet.
	Ended *time.Time `json:"ended,omitempty"`
}

// Deletes tells whether it is one of those that close a gate although they are on purpose: Weir
// would delete what the cluster keeps.
func (d *Difference) Deletes() bool { return d.What == Late && d.Verb == deletes }

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
