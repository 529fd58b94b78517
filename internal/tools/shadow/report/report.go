package report

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// deletes is the verb that collects an object.
const deletes = "delete"

// What became of a decision.
const (
	Done      = "done"      // a client carried it out
	Withdrawn = "withdrawn" // a later observation contradicts it, or its object is not followed any more
	Late      = "late"      // no client has carried it out for long: a difference
)

// What became of objects with owners that were deleted without a decision.
const (
	Sooner = "sooner" // Weir would have deleted it too, but had not decided yet, or did not know an owner
	Others = "others" // an owner of it lives, or can never be determined: a user or a controller deleted it
	Kept   = "kept"   // Weir kept it in doubt, and no owner is known to live: a difference
)

// Report is what was found up to a moment.
type Report struct {
	Since time.Time `json:"since"`
	At    time.Time `json:"at"`
	// ComparedSeconds is for how much of that time the process compared. A clock that is set, or a
	// machine that sleeps, adds nothing.
	ComparedSeconds float64 `json:"comparedSeconds"`
	// Unseen is what Weir cannot see now, and so does not compare. MoreUnseen are only counted.
	Unseen     []Unseen `json:"unseen,omitempty"`
	MoreUnseen int      `json:"moreUnseen,omitempty"`
	// Ready reports whether all kinds have been listed. Before that, much is in doubt.
	Ready bool `json:"ready"`
	// Decisions are counted by verb (delete, release, unblock, unfinalize) and by outcome: done,
	// withdrawn, late (counted besides) and open.
	Decisions map[string]map[string]int `json:"decisions"`
	// Deletes counts the deletes of objects with owners that Weir had not decided: sooner, others
	// and kept.
	Deletes map[string]int `json:"deletes"`
	// LagSeconds is how much later than Weir's decision deletes came.
	LagSeconds  Lag          `json:"lagSeconds"`
	Differences []Difference `json:"differences"`
	// OnPurpose are the differences from kube-controller-manager that are on purpose. Those that
	// delete close a gate that does not accept them.
	OnPurpose     []Difference `json:"onPurpose,omitempty"`
	More          int          `json:"more,omitempty"`          // differences that are only counted
	MoreOnPurpose int          `json:"moreOnPurpose,omitempty"` // the same, of those on purpose
	// MoreDeletes are those of MoreOnPurpose that delete, by their OnPurpose.
	MoreDeletes map[string]int `json:"moreDeletes,omitempty"`
	Forgotten   int            `json:"forgotten,omitempty"` // decisions that were not compared, because too many were open
	// ForgottenWrites are writes of references that were not recorded, because there were too many
	// at once. A difference that one of them caused is not known to be on purpose.
	ForgottenWrites int `json:"forgottenWrites,omitempty"`
}

// Unseen is a kind that is not seen, or a group version whose kinds are not known.
type Unseen struct {
	What string `json:"what"`
	Why  string `json:"why"`
	// ComparedSeconds is the part of the report's ComparedSeconds until it was last seen. The time
	// since then counts for users who accept that it is not seen.
	ComparedSeconds float64 `json:"comparedSeconds"`
}

// Difference is an action that Weir would take and no client took, or that a client took and Weir
// would not.
type Difference struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"` // Late or Kept
	Verb   string    `json:"verb"`
	Object string    `json:"object"`
	UID    types.UID `json:"uid"`
	Why    string    `json:"why"`
	// OnPurpose is the name in DESIGN.md of a difference on purpose from kube-controller-manager;
	// "" if there is no explanation.
	OnPurpose string `json:"onPurpose,omitempty"`
	// Ended is when the decision was carried out after all, or withdrawn; nil if neither.
	Ended *time.Time `json:"ended,omitempty"`
}

// Deletes reports whether Weir would delete what the cluster keeps. Such a difference closes a gate
// even if it is on purpose.
func (d *Difference) Deletes() bool { return d.What == Late && d.Verb == deletes }

// Lag is a distribution, in seconds.
type Lag struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Most   float64 `json:"most"`
}
