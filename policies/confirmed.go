package policies

import (
	"cmp"
	"strings"
	"time"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// record is who confirmed a delete, and when. Weir's webhook writes it when it sees the
// confirmation being written, and seals it: a copy on another object, or beside another
// confirmation, counts for nothing. It is used up with the object, whose uid no other has.
type record struct {
	at       time.Time
	by, seal string
}

// recordOf is the zero value where there is none, or one that cannot be read.
func recordOf(o object) (r record) {
	at, rest, _ := strings.Cut(o.annotation(v1beta1.ConfirmedAnnotation), " ")
	seal, by, _ := strings.Cut(rest, " ")
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return record{}
	}
	return record{at: t.UTC(), by: by, seal: seal}
}

func (r record) String() string { return r.at.Format(time.RFC3339) + " " + r.seal + " " + r.by }

// text is what is sealed: of this object, and of this confirmation.
func (r record) text(uid, confirmation string) string {
	return "confirm\n" + uid + "\n" + confirmation + "\n" + r.at.Format(time.RFC3339) + "\n" + r.by
}

// validFor is how long a confirmation holds.
func validFor(p *v1beta1.Protection) time.Duration {
	const anHour = 3600
	return time.Duration(cmp.Or(p.ConfirmationValidForSeconds, anHour)) * time.Second
}

// recordConfirmation writes, when an UPDATE writes a confirmation or what is recorded of one, whose
// that is now: of who sends the request. Of a confirmation that is taken off nothing is kept. It
// warns of one that does not count.
func recordConfirmation(q *Question, d *Decision) (warning string) {
	if q.Operation != Update || !writesMetadata(q.Resource.GroupResource(), q.Subresource) {
		return ""
	}
	is, was := object(q.Object), object(q.OldObject)
	value, written := is.annotation(v1beta1.ConfirmDeleteAnnotation), is.annotation(v1beta1.ConfirmedAnnotation)
	if value == was.annotation(v1beta1.ConfirmDeleteAnnotation) &&
		written == was.annotation(v1beta1.ConfirmedAnnotation) {
		return ""
	}
	if uid, _, _ := strings.Cut(value, "/"); uid != "" && uid == string(is.uid()) {
		r := record{at: q.Now.UTC().Truncate(time.Second), by: q.User.Name}
		known := false
		if q.Seal != nil && !q.Now.IsZero() {
			r.seal, known = q.Seal(r.text(uid, value))
		}
		if known {
			d.Patch = append(d.Patch, addAnnotation(is, v1beta1.ConfirmedAnnotation, r.String()))
			return ""
		}
		warning = "the confirmation of " + q.what() + " does not count: weir cannot seal it yet. Write it again"
	}
	if written != "" {
		d.Patch = append(d.Patch, PatchOperation{Op: "remove", Path: annotationPath(v1beta1.ConfirmedAnnotation)})
	}
	return warning
}

// confirmationChanges is for the API server whether an update changes a confirmation, or what is
// recorded of it.
var confirmationChanges = "object != null && oldObject != null && (" +
	annotationChanges(v1beta1.ConfirmDeleteAnnotation) + " || " + annotationChanges(v1beta1.ConfirmedAnnotation) + ")"
