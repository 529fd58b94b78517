package policies

import (
	"cmp"
	"strings"
	"time"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// record is who confirmed a delete, and when. Weir's webhook writes it when a confirmation is
// written, and seals it: a copy on another object, or beside another confirmation, does not count.
// It goes with the object, whose uid no other has.
type record struct {
	at       time.Time
	by, seal string
}

// recordOf returns the zero value if there is no record, or none that can be read.
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

// text returns what is sealed: it names the object and the confirmation.
func (r record) text(uid, confirmation string) string {
	return "confirm\n" + uid + "\n" + confirmation + "\n" + r.at.Format(time.RFC3339) + "\n" + r.by
}

// validFor returns how long a confirmation is valid.
func validFor(p *v1beta1.Protection) time.Duration {
	const anHour = 3600
	return time.Duration(cmp.Or(p.ConfirmationValidForSeconds, anHour)) * time.Second
}

// recordConfirmation writes the record when an UPDATE changes a confirmation, or its record: the
// user is the one of the request. Without a confirmation, the record is removed. warning is about a
// confirmation that does not count.
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

// confirmationChanges is the CEL for an update that changes a confirmation, or its record.
var confirmationChanges = "object != null && oldObject != null && (" +
	annotationChanges(v1beta1.ConfirmDeleteAnnotation) + " || " + annotationChanges(v1beta1.ConfirmedAnnotation) + ")"
