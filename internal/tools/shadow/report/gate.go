package report

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/controller/words"
)

// Gate is what a report must pass before Weir takes over.
type Gate struct {
	// Lasted is for how long there must have been no difference; 0 for no gate.
	Lasted time.Duration
	// Accept are differences on purpose that delete, by their OnPurpose. To accept one is to know
	// that Weir deletes objects which the cluster keeps.
	Accept []string
}

// Check returns what is wrong with the flags.
func (g Gate) Check() error {
	if g.Lasted < 0 {
		return fmt.Errorf("--gate %s: must not be less than 0", g.Lasted)
	}
	if len(g.Accept) > 0 && g.Lasted == 0 {
		return errors.New("--accept is for --gate")
	}
	return nil
}

// mostNamed is how many objects, or kinds, an error names.
const mostNamed = 5

// Gate returns what closes the gate; nil if it is open.
func (r *Report) Gate(g Gate) error {
	var errs []error
	if !r.Ready {
		errs = append(errs, errors.New("not all kinds have been listed"))
	}
	if compared := r.compared(); compared < g.Lasted {
		errs = append(errs, fmt.Errorf("it has compared for %s, and not for %s yet", compared.Truncate(time.Second),
			g.Lasted))
	}
	for i, u := range r.Unseen {
		if i == mostNamed {
			errs = append(errs, fmt.Errorf("cannot see %d more", len(r.Unseen)-i))
			break
		}
		errs = append(errs, fmt.Errorf("cannot see %s (%s), and nothing of it is compared: repair that, or leave the kind "+
			"alone with --ignore of weir controller", words.Printable(u.What), words.Printable(u.Why)))
	}
	if n := r.Unexplained(); n > 0 {
		errs = append(errs, errors.New(words.Count(n, "difference", "differences")))
	}
	of := r.deletesOnPurpose()
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if !slices.Contains(g.Accept, name) {
			errs = append(errs, closes(name, of[name]))
		}
	}
	return errors.Join(errs...)
}

// compared returns for how long everything was seen and compared.
func (r *Report) compared() time.Duration {
	return time.Duration(r.ComparedSeconds * float64(time.Second))
}

// closes returns the error that closes the gate for what Weir would delete, and the cluster keeps,
// for one difference on purpose.
func closes(name string, objects []string) error {
	named := strings.Join(objects[:min(len(objects), mostNamed)], ", ")
	if more := len(objects) - mostNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("on purpose Weir would delete what the cluster keeps (%s): %s; to keep them, repair their "+
		"ownerReferences; to accept that, --accept %s", words.Printable(name), named, words.Shell(name))
}

// deletesOnPurpose returns the objects of differences on purpose that delete, by name.
func (r *Report) deletesOnPurpose() map[string][]string {
	of := map[string][]string{}
	for _, d := range r.Differences {
		if d.OnPurpose != "" && d.What == Late && d.Verb == "delete" {
			of[d.OnPurpose] = append(of[d.OnPurpose], words.Printable(d.Object))
		}
	}
	return of
}
