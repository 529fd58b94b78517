package policies

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// A confirmation is the object's uid, or UID/DIGEST. With a digest, it holds only as long as
// exactly the same objects would be deleted with it.

// MostConfirmed bounds the objects, and references to them, that a digest covers: it locks the
// graph for 30 ms.
const MostConfirmed = 100_000

// confirmed reports whether a DELETE is confirmed as a policy requires. stale is why a confirmation
// no longer counts, or never did.
func (s *Set) confirmed(q *Question, c *compiled, w propagation) (yes bool, stale string) {
	if yes, stale = s.confirmedForAny(q, c); !yes {
		return false, stale
	}
	_, digest, exact := strings.Cut(q.judged().annotation(v1beta1.ConfirmDeleteAnnotation), "/")
	if !exact {
		return true, ""
	}
	now, known := q.digest(w)
	switch {
	case !known:
		return false, fmt.Sprintf("; it was confirmed for certain objects, and Weir does not know yet whether "+
			"these are all that would be deleted now (for more than %d objects, "+
			"annotate it with the uid alone)", MostConfirmed)
	case now != digest:
		return false, "; it was confirmed for other objects than would be deleted now: look again with kubectl weir plan"
	}
	return true, ""
}

// confirmedForAny reports the same without regard to what would be deleted with the object.
func (s *Set) confirmedForAny(q *Question, c *compiled) (yes bool, why string) {
	o := q.judged()
	value := o.annotation(v1beta1.ConfirmDeleteAnnotation)
	uid, _, _ := strings.Cut(value, "/")
	if uid == "" || uid != string(o.uid()) {
		return false, ""
	}
	p, r := c.deletion.protection, recordOf(o)
	second := p.Confirmation == v1beta1.ConfirmationSecondPerson
	switch valid := validFor(p); {
	case r == record{} && q.Sealed == nil && !second:
		return true, "" // there is no key: the annotation is believed
	case r == record{}:
		return false, "; its confirmation was written while the API server did not ask Weir's webhook, so it is not " +
			"known whose it is: write it again"
	case q.Sealed != nil && !q.Sealed(r.text(uid, value), r.seal):
		return false, "; the note of who confirmed it is not Weir's, or is of another object: write the confirmation again"
	case !q.Now.IsZero() && q.Now.Sub(r.at) > valid:
		return false, fmt.Sprintf("; it was confirmed by %q at %s, which was valid for %s",
			r.by, r.at.Format(time.RFC3339), duration.HumanDuration(valid))
	case !second:
	case isMachine(r.by):
		return false, fmt.Sprintf("; it was confirmed by %q, which is not a person", r.by)
	case s.collects(q) && !object(q.NamespaceObject).terminating():
		return false, fmt.Sprintf("; it was confirmed by %q, and a garbage collector does not say for whom it deletes: "+
			"delete the object itself", r.by)
	case r.by == q.User.Name:
		return false, fmt.Sprintf("; it was confirmed by %q, who also deletes it: another person may delete it now", r.by)
	}
	return true, ""
}

// isMachine reports whether a user is not a person: whoever can act as one service account can
// often act as another.
func isMachine(user string) bool {
	return strings.HasPrefix(user, accountPrefix) || strings.HasPrefix(user, "system:node:")
}

// howToConfirm returns a command. Users paste it, so nothing may follow it on its line. A
// confirmation with a digest gets the present digest, and not one for whatever goes. An equal
// annotation is removed first: writing it again would change nothing, and nobody would be seen to
// do it.
func howToConfirm(q *Question, w propagation) string {
	o := q.judged()
	value := string(o.uid())
	if uid, digest, exact := strings.Cut(o.annotation(v1beta1.ConfirmDeleteAnnotation), "/"); exact && uid == value {
		if now, known := q.digest(w); known {
			digest = now
		}
		value += "/" + digest
	}
	again := ""
	if o.annotation(v1beta1.ConfirmDeleteAnnotation) == value {
		again = fmt.Sprintf("kubectl annotate %s %s- && ", q.kubectl(), v1beta1.ConfirmDeleteAnnotation)
	}
	return again + fmt.Sprintf("kubectl annotate %s --overwrite %s=%s", q.kubectl(), v1beta1.ConfirmDeleteAnnotation,
		value)
}

// confirming says how to delete what must be confirmed.
func confirming(c *compiled, q *Question, w propagation, what string) string {
	how := "confirm and delete again"
	if c.deletion.protection.Confirmation == v1beta1.ConfirmationSecondPerson {
		how = "have a second person confirm it, and delete again"
	}
	return fmt.Sprintf("To delete %s, %s: %s", what, how, howToConfirm(q, w))
}

// digest returns the digest of what a DELETE takes with it.
func (q *Question) digest(w propagation) (digest string, known bool) {
	var s Search
	if w.policy != v1beta1.Orphan {
		s.UID, s.Kept = q.judged().uid(), w.keeps
	}
	switch {
	case q.isNamespace():
		s.Namespace = q.name()
	case q.isCRD():
		gr, err := q.defines()
		if err != nil {
			return "", false
		}
		s.Instances = gr
	}
	if q.Facts.Digest == nil {
		return "", false
	}
	return q.Facts.Digest(s)
}

// Confirmation returns the annotation that confirms a DELETE for exactly the objects that it takes
// with it now. It returns false if these are not all known, or if the webhook would not know them,
// because no policy makes it keep the graph.
func (s *Set) Confirmation(q Question) (value string, known bool) {
	if !s.NeedsGraph() {
		return "", false
	}
	digest, known := q.digest(s.propagationOf(&q, s.askDeletions(&q, &verdict{set: s, q: &q})))
	return string(q.judged().uid()) + "/" + digest, known
}

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
