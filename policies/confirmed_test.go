package policies

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/policies/v1beta1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// sealing has a key, as Weir's webhook does.
func sealing(q Question, now time.Time) Question {
	seal := func(text string) string { return fmt.Sprintf("%.8x", sha256.Sum256([]byte("key "+text))) }
	q.Now = now
	q.Seal = func(text string) (string, bool) { return seal(text), true }
	q.Sealed = func(text, written string) bool { return written == seal(text) }
	return q
}

// writes is the UPDATE by which a user writes annotations in the place of others; a DELETE of the
// same object otherwise.
func writes(user string, at time.Time, was, is map[string]any) Question {
	q := sealing(web(map[string]any{"annotations": was}), at)
	q.Operation, q.User.Name = Update, user
	q.Object = web(map[string]any{"annotations": is}).OldObject
	return q
}

// confirm are the annotations that are there after a user has written a confirmation.
func confirm(t *testing.T, set *Set, user string, at time.Time, value string) map[string]any {
	t.Helper()
	q := writes(user, at, nil, map[string]any{v1beta1.ConfirmDeleteAnnotation: value})
	if _, asked := asTheAPIServer(t, set, WebhookConfirm, q); len(asked) != 1 {
		t.Fatalf("a confirmation comes to %v", asked)
	}
	q.Asked = WebhookConfirm
	for _, p := range set.Decide(q).Patch {
		if p.Path == annotationPath(v1beta1.ConfirmedAnnotation) {
			return map[string]any{v1beta1.ConfirmDeleteAnnotation: value, v1beta1.ConfirmedAnnotation: p.Value}
		}
	}
	t.Fatal("nothing is recorded")
	return nil
}

func TestWhoseConfirmationCounts(t *testing.T) {
	const required, second = "protection: {confirmation: Required}", "protection: {confirmation: SecondPerson}"
	unseen := func(a map[string]any) { delete(a, v1beta1.ConfirmedAnnotation) }
	forged := func(a map[string]any) { a[v1beta1.ConfirmedAnnotation] = "2026-01-01T12:00:00Z 0000 carol" }
	other := func(a map[string]any) { a[v1beta1.ConfirmDeleteAnnotation] = "u1/bb" }
	renamed := func(a map[string]any) {
		a[v1beta1.ConfirmedAnnotation] = strings.Replace(a[v1beta1.ConfirmedAnnotation].(string), "bob", "carol", 1)
	}
	for name, c := range map[string]struct {
		policy, by, value string
		change            func(map[string]any)
		ago               time.Duration
		says              string // of the refusal; empty: it counts
	}{
		"one's own":                    {required, "alice", "u1", nil, 0, ""},
		"one's own, where two have to": {second, "alice", "u1", nil, 0, `it was confirmed by "alice", who also deletes it: another person may delete it now (`},
		"another's":                    {second, "bob", "u1", nil, 59 * time.Minute, ""},
		"past its time":                {second, "bob", "u1", nil, 61 * time.Minute, `it was confirmed by "bob" at 2026-01-01T10:59:00Z, which was valid for 60m`},
		"past a time of the policy's":  {"protection: {confirmation: Required, confirmationValidForSeconds: 60}", "bob", "u1", nil, 61 * time.Second, "which was valid for 60s"},
		"within one":                   {"protection: {confirmation: Required, confirmationValidForSeconds: 60}", "bob", "u1", nil, time.Minute, ""},
		"a service account's":          {second, "system:serviceaccount:ci:robot", "u1", nil, 0, "which is not a person"},
		"a service account's, alone":   {required, "system:serviceaccount:ci:robot", "u1", nil, 0, ""},
		"that nobody saw":              {required, "bob", "u1", unseen, 0, "was written while the API server did not ask Weir's webhook"},
		"forged":                       {second, "alice", "u1", forged, 0, "the note of who confirmed it is not Weir's, or is of another object"},
		"with another name":            {required, "bob", "u1", renamed, 0, "the note of who confirmed it is not Weir's"},
		"beside another":               {required, "bob", "u1/aa", other, 0, "the note of who confirmed it is not Weir's"},
		"of what goes along":           {second, "bob", "u1/aa", nil, 0, ""},
		"of what went along":           {second, "bob", "u1/bb", nil, 0, "it was confirmed for other objects than would be deleted now"},
	} {
		t.Run(name, func(t *testing.T) {
			set := Build(nil, sources(t, "f", delpol("p", c.policy)), Options{})
			annotations := confirm(t, set, c.by, noon.Add(-c.ago), c.value)
			if c.change != nil {
				c.change(annotations)
			}
			q := sealing(web(map[string]any{"annotations": annotations}), noon)
			q.Facts.Digest = func(Search) (string, bool) { return "aa", true }
			d := set.Decide(q)
			if d.Allowed != (c.says == "") || !strings.Contains(d.Message, c.says) {
				t.Errorf("allowed %t, %q, want %q", d.Allowed, d.Message, c.says)
			}
			if strings.HasSuffix(c.policy, "SecondPerson}") && !d.Allowed && !strings.Contains(d.Message, "have a second person confirm it") {
				t.Errorf("the way on is closed: %s", d.Message)
			}
		})
	}
}

// A record that was copied with its confirmation from another object is about that object.
func TestAConfirmationIsNotCopied(t *testing.T) {
	set := Build(nil, sources(t, "f", delpol("p", "protection: {confirmation: Required}")), Options{})
	annotations := confirm(t, set, "bob", noon, "u1")
	annotations[v1beta1.ConfirmDeleteAnnotation] = "u2"
	q := sealing(web(map[string]any{"uid": "u2", "annotations": annotations}), noon)
	if d := set.Decide(q); d.Allowed || !strings.Contains(d.Message, "is not Weir's") {
		t.Errorf("allowed %t, %s", d.Allowed, d.Message)
	}
}

// A collector deletes what two persons have to delete only with its namespace, whose delete was
// judged by who asked for it: else who has confirmed it names an owner that never was.
func TestACollectorIsNoSecondPerson(t *testing.T) {
	set := Build(nil, sources(t, "f", delpol("p", "protection: {confirmation: SecondPerson}")), Options{})
	q := sealing(web(map[string]any{"annotations": confirm(t, set, "bob", noon, "u1")}), noon)
	q.User.Name = GarbageCollector
	if d := set.Decide(q); d.Allowed || !strings.Contains(d.Message, "delete the object itself") {
		t.Errorf("allowed %t, %s", d.Allowed, d.Message)
	}
	q.NamespaceObject = map[string]any{"metadata": map[string]any{"name": "shop", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
	if d := set.Decide(q); !d.Allowed {
		t.Errorf("its namespace waits for ever: %s", d.Message)
	}
}

// An update that takes the object out of the policy is a delete, and needs the same persons.
func TestAnUpdateNeedsTheSecondPersonToo(t *testing.T) {
	text := strings.Replace(delpol("p", "protection: {confirmation: SecondPerson}"), "match: {", "match: {objectSelector: {matchLabels: {keep: 'yes'}}, ", 1)
	set := Build(nil, sources(t, "f", text), Options{})
	for by, want := range map[string]bool{"alice": false, "bob": true} {
		annotations := confirm(t, Build(nil, sources(t, "f", delpol("p", "protection: {confirmation: Required}")), Options{}), by, noon, "u1")
		q := writes("alice", noon, annotations, annotations)
		q.OldObject = web(map[string]any{"annotations": annotations, "labels": map[string]any{"keep": "yes"}}).OldObject
		if d := set.Decide(q); d.Allowed != want {
			t.Errorf("confirmed by %s: %t, %s", by, d.Allowed, d.Message)
		}
	}
}

// Whoever changes a confirmation, or what is recorded of it, is who confirms.
func TestWhoWritesIsRecorded(t *testing.T) {
	set := Build(nil, sources(t, "f", delpol("p", "protection: {confirmation: Required}")), Options{})
	bobs := confirm(t, set, "bob", noon.Add(-time.Minute), "u1")
	with := func(key, value string) map[string]any {
		out := map[string]any{key: value}
		for k, v := range bobs {
			if k != key {
				out[k] = v
			}
		}
		return out
	}
	record := bobs[v1beta1.ConfirmedAnnotation].(string)
	for name, c := range map[string]struct {
		was, is map[string]any
		want    string // is recorded; "-": nothing is any more, "": it stays
	}{
		"another edit":       {bobs, bobs, ""},
		"a forged record":    {bobs, with(v1beta1.ConfirmedAnnotation, "2026-01-01T12:00:00Z 0000 carol"), " alice"},
		"no record":          {bobs, map[string]any{v1beta1.ConfirmDeleteAnnotation: "u1"}, " alice"},
		"other objects":      {bobs, with(v1beta1.ConfirmDeleteAnnotation, "u1/aa"), " alice"},
		"it is taken off":    {bobs, map[string]any{v1beta1.ConfirmedAnnotation: record}, "-"},
		"of another object":  {bobs, with(v1beta1.ConfirmDeleteAnnotation, "u2"), "-"},
		"it is put on again": {map[string]any{}, bobs, " alice"},
	} {
		q := writes("alice", noon, c.was, c.is)
		_, asked := asTheAPIServer(t, set, WebhookConfirm, q)
		q.Asked = WebhookConfirm
		got := ""
		for _, p := range set.Decide(q).Patch {
			if got = "-"; p.Op == "add" {
				got = p.Value.(string)
			}
		}
		if !strings.HasSuffix(got, c.want) || c.want == "" && got != "" || (len(asked) > 0) != (c.want != "") {
			t.Errorf("%s: %q is recorded, want %q; it comes to %v", name, got, c.want, asked)
		}
	}
	q := writes("alice", noon, nil, map[string]any{v1beta1.ConfirmDeleteAnnotation: "u1"})
	q.Seal = func(string) (string, bool) { return "", false }
	if d := set.Decide(q); len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "does not count") {
		t.Errorf("without a key: %q", d.Warnings)
	}
}
