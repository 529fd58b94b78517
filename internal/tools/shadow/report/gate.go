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
	// Accept are differences on purpose that delete, by their OnPurpose, and kinds that are not
	// seen, by their name. To accept the first is to know that Weir deletes objects which the
	// cluster keeps; to accept the second, that nothing of the kind is compared.
	Accept []string
}

// AcceptUsage is the help text of the flag that sets Accept.
const AcceptUsage = "with --gate: a difference on purpose for which Weir may delete what the cluster keeps, or a " +
	"kind that Weir cannot see, by the name that is shown with it; may be repeated"

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
	if compared := r.compared(g.Accept); compared < g.Lasted {
		errs = append(errs, fmt.Errorf("it has compared for %s, and not for %s yet", compared.Truncate(time.Second),
			g.Lasted))
	}
	errs = append(errs, r.notSeen(g.Accept)...)
	if n := len(r.Differences) + r.More; n > 0 {
		errs = append(errs, errors.New(differences(n)))
	}
	of := r.deletesOnPurpose()
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if !slices.Contains(g.Accept, name) {
			errs = append(errs, of[name].closes(name))
		}
	}
	if r.Forgotten > 0 {
		errs = append(errs, fmt.Errorf("%d decisions were not compared, because too many were open", r.Forgotten))
	}
	return errors.Join(errs...)
}

// purposeful is what Weir would delete, and the cluster keeps, for one difference on purpose.
type purposeful struct {
	count   int
	objects []string // the first of them
}

// closes returns the error that closes the gate.
func (p purposeful) closes(name string) error {
	objects := strings.Join(p.objects, ", ")
	if more := p.count - len(p.objects); more > 0 {
		objects = strings.TrimPrefix(fmt.Sprintf("%s and %d more", objects, more), " and ")
	}
	return fmt.Errorf("on purpose Weir would delete what the cluster keeps (%s): %s; to keep them, repair their "+
		"ownerReferences; to accept that, %s",
		words.Printable(name), objects, accept(name))
}

// accept returns the flag by which a user accepts name.
func accept(name string) string { return "--accept " + words.Shell(name) }

// deletesOnPurpose returns the differences on purpose that delete, by name.
func (r *Report) deletesOnPurpose() map[string]purposeful {
	of := map[string]purposeful{}
	for i := range r.OnPurpose {
		d := &r.OnPurpose[i]
		if !d.Deletes() {
			continue
		}
		p := of[d.OnPurpose]
		if p.count++; len(p.objects) < mostNamed {
			p.objects = append(p.objects, words.Printable(d.Object))
		}
		of[d.OnPurpose] = p
	}
	for name, n := range r.MoreDeletes {
		p := of[name]
		p.count += n
		of[name] = p
	}
	return of
}

func differences(n int) string {
	if n == 1 {
		return "1 difference"
	}
	return fmt.Sprintf("%d differences", n)
}
