package collect

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestWhatIsBeingDeletedComesFirstAndNothingWaitsForItsEnd: names that begin with e are being
// deleted.
func TestWhatIsBeingDeletedComesFirstAndNothingWaitsForItsEnd(t *testing.T) {
	for want, in := range map[string]string{
		"":                               "",
		"a b c":                          "a b c",
		"e1 e2 a b":                      "a e1 b e2",
		"e1 e2 e3 a e4 e5 e6 b e7 e8 e9": "a b e1 e2 e3 e4 e5 e6 e7 e8 e9",
	} {
		l := newLanes(func(uid types.UID) bool { return strings.HasPrefix(string(uid), "e") })
		for _, uid := range strings.Fields(in) {
			l.Push(types.UID(uid))
		}
		var got []string
		for n := l.Len(); n > 0; n-- {
			got = append(got, string(l.Pop()))
		}
		if !slices.Equal(got, strings.Fields(want)) || l.Len() != 0 {
			t.Errorf("%s: got %q, want %q, and %d are left", in, got, want, l.Len())
		}
	}
}
