package policies

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/policies/v1beta1"
)

func TestConfirmationForWhatGoesAlong(t *testing.T) {
	for name, c := range map[string]struct {
		value  string
		change func(*Question)
		says   string // of the refusal; empty: it is confirmed
	}{
		"of the object":                        {"u1", nil, ""},
		"of what goes along":                   {"u1/aa", nil, ""},
		"of what went along":                   {"u1/bb", nil, "for other objects than would be deleted now: look again with kubectl weir plan"},
		"of another object":                    {"u2/aa", nil, "may not be deleted: 3 objects would also be deleted"},
		"of nothing that goes along":           {"u1/", nil, "for other objects than would be deleted now"},
		"of what goes along, which is unknown": {"u1/aa", func(q *Question) { q.Facts.Digest = nil }, "Weir does not know yet whether these are all"},
		"of what goes along, not all known": {"u1/aa", func(q *Question) {
			q.Facts.Digest = func(Search) (string, bool) { return "aa", false }
		}, "Weir does not know yet whether these are all"},
	} {
		for kind, policy := range map[string]string{"what would also be deleted": "protection: {maxDependents: 0, confirmation: Required}", "each delete": "protection: {confirmation: Required}"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				set := Build(nil, sources(t, "f", delpol("p", policy)), Options{})
				q := web(map[string]any{"annotations": map[string]any{v1beta1.ConfirmDeleteAnnotation: c.value}})
				q.Facts.Digest = func(s Search) (string, bool) {
					if s.UID != "u1" || s.Namespace != "" {
						t.Errorf("the digest is of %+v", s)
					}
					return "aa", true
				}
				if c.change != nil {
					c.change(&q)
				}
				d := set.Decide(q)
				want := c.says
				if name == "of another object" && kind == "each delete" {
					want = "without confirmation"
				}
				if d.Allowed != (want == "") || !strings.Contains(d.Message, want) {
					t.Errorf("allowed %t, %q, want %q", d.Allowed, d.Message, want)
				}
			})
		}
	}
}

// TestWaysOnAreOpen: the command of a refusal is as strong as the confirmation that does not hold
// any more.
func TestWaysOnAreOpen(t *testing.T) {
	for name, c := range map[string]struct {
		policy, value string
		change        func(*Question)
		way           string
	}{
		"not confirmed":                      {"protection: {confirmation: Required}", "", nil, "To delete it, confirm and delete again: HOW=u1"},
		"confirmed for others":               {"protection: {confirmation: Required}", "u1/bb", nil, "To delete it, confirm and delete again: HOW=u1/aa"},
		"of what owns, confirmed for others": {"protection: {maxDependents: 0, confirmation: Required}", "u1/bb", nil, "To delete them too, confirm and delete again: HOW=u1/aa"},
		"confirmed, and not known for what":  {"protection: {confirmation: Required}", "u1/bb", func(q *Question) { q.Facts.Digest = nil }, "HOW=u1/bb"},
		"of another object":                  {"protection: {confirmation: Required}", "u2/bb", nil, "HOW=u1"},
		"on trial":                           {"protection: {confirmation: Required}, validationActions: [Warn]", "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			set := Build(nil, sources(t, "f", delpol("p", c.policy)), Options{})
			q := web(map[string]any{"annotations": map[string]any{v1beta1.ConfirmDeleteAnnotation: c.value}})
			q.Facts.Digest = func(Search) (string, bool) { return "aa", true }
			if c.change != nil {
				c.change(&q)
			}
			d := set.Decide(q)
			way := strings.ReplaceAll(c.way, "HOW", "kubectl annotate deployments.apps web -n shop --overwrite "+v1beta1.ConfirmDeleteAnnotation)
			if !strings.HasSuffix(d.Message, way) {
				t.Errorf("%q, want %q at its end", d.Message, way)
			}
		})
	}
}

// What a plan prints is what confirms.
func TestConfirmationIsOfTheSameSearch(t *testing.T) {
	digests := func(s Search) (string, bool) { return string(s.UID) + s.Namespace + s.Instances.String(), true }
	for name, q := range map[string]Question{
		"an object":                     web(nil),
		"one whose dependents are kept": func() Question { q := web(nil); q.Options = map[string]any{"propagationPolicy": "Orphan"}; return q }(),
		"another":                       web(map[string]any{"uid": "u9"}),
	} {
		t.Run(name, func(t *testing.T) {
			set := Build(nil, sources(t, "f", delpol("p", "protection: {confirmation: Required}")), Options{})
			q.Facts.Digest = digests
			value, known := set.Confirmation(q)
			if !known {
				t.Fatal("it is not known")
			}
			q.OldObject["metadata"].(map[string]any)["annotations"] = map[string]any{v1beta1.ConfirmDeleteAnnotation: value}
			if d := set.Decide(q); !d.Allowed {
				t.Errorf("%s does not confirm: %s", value, d.Message)
			}
		})
	}
}
