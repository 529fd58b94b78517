package ask

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// hold makes a HeldCollection.
func (w *town) hold(name, cause, digest string) {
	w.api.Put("heldcollections", fmt.Sprintf(`{apiVersion: weir.dev/v1beta1, kind: HeldCollection, metadata: {name: %s},
  status: {cause: {type: %s, resource: configmaps}, since: "2026-01-01T00:00:00Z", digest: %q, held: 2, objects: 3,
    conditions: [{type: Held, status: "True", reason: AwaitsDecision, message: "Held: 2 objects.", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`,
		name, cause, digest))
}

// TestWhatIsHeldIsShownAndDecided: the decision is about the digest that was there when the plan
// was made, and none is written where it would come to nothing, or the user does not agree.
func TestWhatIsHeldIsShownAndDecided(t *testing.T) {
	for name, c := range map[string]struct {
		args    string
		said    []string // what it prints, or is wrong
		written string
	}{
		"all":                        {"held", []string{"configmaps: 3 objects", "AwaitsDecision", "Held: 2 objects.", "forged: holds nothing"}, ""},
		"all, as YAML":               {"held -o yaml", []string{"kind: HeldCollections", "digest: feed"}, ""},
		"one":                        {"held configmaps", []string{"Held: 2 objects.", "Plan: 1 object is deleted"}, ""},
		"one, as JSON":               {"held configmaps -o json", []string{`"held": "configmaps"`}, ""},
		"one that is not there":      {"held secrets", []string{"there is no such HeldCollection"}, ""},
		"a decision about all":       {"held --proceed", []string{"name the HeldCollection"}, ""},
		"both":                       {"held configmaps --proceed --discard", []string{"none of the others can be"}, ""},
		"nobody agrees":              {"held configmaps --proceed", []string{"not decided"}, ""},
		"proceed":                    {"held configmaps --proceed --yes", []string{"Plan: 1 object is deleted"}, `{"decision":"Proceed","digest":"feed"}`},
		"discard":                    {"held configmaps --discard --yes", []string{"Plan: 1 object is deleted"}, `{"decision":"Discard","digest":"feed"}`},
		"discard what was asked for": {"held requested.configmaps --discard --yes", []string{"delete it again with --cascade=orphan"}, ""},
		"what waits for nothing":     {"held decided --proceed --yes", []string{"nothing waits for a decision"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t)
			w.put("lost", "never")
			w.hold("configmaps", string(v1beta1.HeldInferred), "feed")
			w.hold("requested.configmaps", string(v1beta1.HeldForRequest), "feed")
			w.hold("decided", string(v1beta1.HeldInferred), "")
			w.api.Put("heldcollections", "{apiVersion: weir.dev/v1beta1, kind: HeldCollection, metadata: {name: forged}}")
			s := w.run(strings.Fields(c.args)...)
			said := fmt.Sprint(s.out, s.failed)
			for _, want := range c.said {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not in\n%s", want, said)
				}
			}
			want := []string{}
			if c.written != "" {
				want = append(want, `PATCH /apis/weir.dev/v1beta1/heldcollections/configmaps  {"metadata":{"uid":"uid-configmaps"},"spec":`+c.written+"}")
			}
			if got := slices.DeleteFunc(w.written, func(r string) bool { return !strings.HasPrefix(r, "PATCH") }); !slices.Equal(got, want) {
				t.Errorf("written %q, want %q", got, want)
			}
		})
	}
}
