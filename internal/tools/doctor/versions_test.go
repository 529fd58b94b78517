package doctor_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/tools/doctor"
)

// TestLacks says of each version how many things it lacks, and what doctor says about it.
func TestLacks(t *testing.T) {
	for minor, want := range map[int]string{
		30: "lists in pages from the watch cache, consistent lists from the watch cache, ordered namespace deletion",
		31: "lists in pages from the watch cache, ordered namespace deletion",
		32: "lists in pages from the watch cache, ordered namespace deletion",
		33: "lists in pages from the watch cache",
		34: "", 35: "", 36: "", 37: "",
	} {
		var got []string
		for _, l := range doctor.Lacks(minor) {
			what, then, _ := strings.Cut(strings.TrimPrefix(l, "no "), ": ")
			if then == "" {
				t.Errorf("1.%d: %q does not say what follows", minor, l)
			}
			got = append(got, what)
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("1.%d lacks %q, want %q", minor, s, want)
		}
	}
	for s, want := range map[string]int{"36": 36, "34+": 34, "": 0, "x": 0} {
		if n := doctor.Minor(s); n != want {
			t.Errorf("minor %q is %d, want %d", s, n, want)
		}
	}
	f := doctor.Facts{Mode: doctor.Companion, Server: "v1.32.13", Major: 1, Minor: 32}
	if v := doctor.Examine(f)[0]; v.Grade != doctor.OK || !strings.HasPrefix(v.Says, "v1.32.13; no lists in pages from the watch cache: ") || !strings.Contains(v.Says, "no ordered namespace deletion: ") {
		t.Errorf("%s %s", v.Grade, v.Says)
	}
}
