package namespaces

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestWhatADrainDeletesIsRecorded: the kinds with most objects first; a namespace that held nothing
// is not worth an Event.
func TestWhatADrainDeletesIsRecorded(t *testing.T) {
	for _, c := range []struct {
		counts map[string]int
		want   string
	}{
		{nil, ""},
		{map[string]int{"pods": 1}, "1 object in it was deleted (1 pods)"},
		{map[string]int{"pods": 1, "secrets": 3, "configmaps": 3}, "7 objects in it were deleted (3 configmaps, 3 secrets, 1 pods)"},
		{map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "h": 1, "i": 1, "j": 1, "k": 1, "l": 5},
			"16 objects in it were deleted (5 l, 1 a, 1 b, 1 c, 1 d, 1 e, 1 f, 1 g, 1 h, 1 i, objects of 2 more kinds)"},
	} {
		w := went{}
		for kind, n := range c.counts {
			w[schema.GroupResource{Resource: kind}] = n
		}
		if got := w.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
