package brake

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// TestMessageSaysWhatIsHeldAndWhatIsNotKnown in each state of a record.
func TestMessageSaysWhatIsHeldAndWhatIsNotKnown(t *testing.T) {
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	kind := cause{kind: widgets}
	some := findings{items: []item{{uid: "a"}, {uid: "b"}}, weight: counts{{Resource: "pods"}: 7}, because: map[graph.Conclusion]int{graph.OwnerNotFound: 1, graph.DefinitionGone: 1},
		why: "more than 1 object would be deleted", digest: "feed", complete: true}
	part := some
	part.complete, part.going = false, 3
	for name, c := range map[string]struct {
		seen findings
		want []string
		not  string
	}{
		"nothing":                    {findings{}, []string{"Nothing is held any more."}, "Held"},
		"owners that are not known":  {findings{open: 4}, []string{"Nothing is held. 4 owners are still being looked up."}, "Held"},
		"what goes by a decision":    {findings{going: 3, open: 4}, []string{"is not carried out yet for 3 objects. Nothing else waits for a decision."}, "looked up"},
		"objects":                    {some, []string{"Held: 2 objects (7 with all", "owners of the kind widgets.example.com", "1: their owners were not found", "; 1: their owners were deleted with the definition", "kubectl patch held widgets.example.com ", `"digest":"feed"`}, "at least"},
		"more than could be counted": {part, []string{"not carried out yet for 3 objects. Held: 2 objects (at least 7 with all"}, "Nothing else"},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&record{cause: kind, seen: c.seen}).condition().Message
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in: %s", want, got)
				}
			}
			if strings.Contains(got, c.not) {
				t.Errorf("%q is in: %s", c.not, got)
			}
		})
	}
}

// TestStatusIsWithinItsSchema however long names are and however many kinds there are, or the API
// server would refuse it, and no user be told.
func TestStatusIsWithinItsSchema(t *testing.T) {
	r := &record{outcome: strings.Repeat("é", 3000), seen: findings{weight: counts{}, because: map[graph.Conclusion]int{}}}
	for i := range 30 {
		r.seen.weight[schema.GroupResource{Resource: fmt.Sprintf("kind%02d", i)}] = i/2 + 1
	}
	for i := range mostSamples {
		uid := types.UID(fmt.Sprint(i))
		r.seen.samples = append(r.seen.samples, graph.Inferred{Ref: graph.Ref{UID: uid, Name: strings.Repeat("é", 700)}, Why: strings.Repeat("é", 2000)})
	}
	st := r.status(&v1beta1.HeldCollection{}, time.Unix(0, 0))
	for what, c := range map[string]struct {
		text string
		most int
	}{"message": {st.Conditions[0].Message, 2048}, "name": {st.Samples[9].Name, 253}, "why": {st.Samples[9].Why, 1024}} {
		if n := utf8.RuneCountInString(c.text); n != c.most || !utf8.ValidString(c.text) || !strings.HasSuffix(c.text, "…") {
			t.Errorf("%s has %d characters, want %d, the last for what is left out", what, n, c.most)
		}
	}
	if len(st.Kinds) != mostKinds || st.Kinds[0].Resource != "kind28" || st.Kinds[1].Resource != "kind29" || st.Kinds[19].Objects != 6 {
		t.Errorf("kinds, most objects first: %v", st.Kinds)
	}
}

// TestAStatusLeavesNothingOfTheOneBefore: it is merged into what is there, so that each field which
// it does not have must be taken away.
func TestAStatusLeavesNothingOfTheOneBefore(t *testing.T) {
	since := metav1.NewTime(time.Unix(0, 0))
	full := v1beta1.HeldCollectionStatus{Cause: v1beta1.HeldCause{Resource: "pods"}, Conclusions: []v1beta1.HeldConclusion{"c"}, Conditions: []metav1.Condition{{Type: "Held"}}, Since: &since, Digest: "d", Held: 1, Objects: 2, Kinds: []v1beta1.HeldKind{{Resource: "pods"}}, Samples: []v1beta1.HeldSample{{Name: "o"}}}
	text, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	var before map[string]any
	if err := json.Unmarshal(text, &before); err != nil {
		t.Fatal(err)
	}
	patch, err := patchOf(&v1beta1.HeldCollectionStatus{Since: &since, Conditions: []metav1.Condition{{Type: "Held"}}})
	if err != nil {
		t.Fatal(err)
	}
	for field := range before {
		value, is := patch[field]
		if kept := field == "since" || field == "conditions"; !is || (value != nil) != kept {
			t.Errorf("%s becomes %v", field, value)
		}
	}
	if diff := cmp.Diff(len(before), len(patch)); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}
