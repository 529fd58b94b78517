// Package report is the result of shadow mode, as it is served and shown. The processes that compare
// write it; kubectl weir reads it.
//
// It is pure: the time is an argument. A report that is read may come from anybody, so Read bounds
// its size, and Draw keeps names and reasons in their line.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Path is where a weir in shadow mode serves its report to this machine, at Address.
const (
	Path    = "/shadow"
	Address = "127.0.0.1:8089"
)

// Most is how many bytes of a report are read. A weir in shadow mode writes less: it bounds how many
// differences it names, and cuts long names.
const Most = 16 << 20

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
	// ComparedSeconds is for how much of that time the process saw all kinds and compared. A clock
	// that is set, or a machine that sleeps, adds nothing.
	ComparedSeconds float64 `json:"comparedSeconds"`
	// Unseen is what Weir cannot see now, and so does not compare.
	Unseen []Unseen `json:"unseen,omitempty"`
	// Ready reports whether all kinds have been listed. Before that, much is in doubt.
	Ready bool `json:"ready"`
	// Decisions are counted by verb (delete, release, unblock, unfinalize) and by outcome: done,
	// withdrawn, late (counted besides) and open.
	Decisions map[string]map[string]int `json:"decisions"`
	// Deletes counts the deletes of objects with owners that Weir had not decided: sooner, others
	// and kept.
	Deletes     map[string]int `json:"deletes"`
	Differences []Difference   `json:"differences"`
	// More counts differences, and decisions that were not compared, for which there was no room.
	More int `json:"more,omitempty"`
}

// Unseen is a kind that is not seen, or a group version whose kinds are not known.
type Unseen struct {
	What string `json:"what"`
	Why  string `json:"why"`
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
	// "" if there is no explanation. One on purpose that deletes closes a gate that does not accept
	// it.
	OnPurpose string `json:"onPurpose,omitempty"`
	// Ended is when the decision was carried out after all, or withdrawn; nil if neither.
	Ended *time.Time `json:"ended,omitempty"`
}

// Unexplained returns how many differences have no explanation.
func (r *Report) Unexplained() int {
	n := 0
	for i := range r.Differences {
		if r.Differences[i].OnPurpose == "" {
			n++
		}
	}
	return n + r.More
}

// Read reads a report.
func Read(in io.Reader) (*Report, error) {
	limited := &io.LimitedReader{R: in, N: Most}
	var r Report
	switch err := json.NewDecoder(limited).Decode(&r); {
	case err != nil && limited.N <= 0:
		return nil, fmt.Errorf("it has more than %d MiB: it is not a report of shadow mode", Most>>20)
	case err != nil:
		return nil, err
	case r.Since.IsZero() || r.At.IsZero():
		return nil, errors.New("it is not a report of shadow mode")
	}
	return &r, nil
}

// Write writes a report in the form that Read reads.
func (r *Report) Write(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // escaped, a < would take six bytes
	return enc.Encode(r)
}
