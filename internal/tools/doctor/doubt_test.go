package doctor

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// unread are the facts that may not be readable: how each is lost, and what is unknown then, by
// mode. A fact that only adds to others is lost without a word.
var unread = []struct {
	fact    string
	lose    func(*Facts)
	unknown map[string][]string
}{
	{"version", func(f *Facts) { f.Server, f.Major, f.Minor = "", 0, 0 }, all("Kubernetes")},
	{"managers", func(f *Facts) { f.Managers, f.Canary = nil, nil }, all("garbage collector", "namespace controller", "mode")},
	{"managerLease", func(f *Facts) { f.ManagerLease = nil }, nil}, // it counts where no pod is seen
	{"weirLease", func(f *Facts) { f.WeirLease = nil }, map[string][]string{Companion: {"controller"}, Replace: {"controller"}}},
	{"flags", func(f *Facts) { f.Flags = nil }, all("flags")},
	{"definitions", func(f *Facts) { f.Definitions = nil }, all("policies")},
	{"policies", func(f *Facts) { f.Policies = nil }, all("policies")},
	{"webhooks", func(f *Facts) { f.Webhooks, f.Asked = nil, nil }, all("webhook")},
	{"admission", func(f *Facts) { f.Admission = nil }, map[string][]string{Companion: {"admission"}, Replace: {"admission"}}},
	{"waiting", func(f *Facts) { f.Waiting = nil }, nil}, // flags tell as well
}

func all(about ...string) map[string][]string {
	return map[string][]string{Shadow: about, Companion: about, Replace: about}
}

// TestWhatWasNotReadIsNeverWell: of each set of facts that could not be read, what depends on them
// is unknown and says why, and the rest is found as if all had been read. Whoever may read little
// must not be told that all is well, nor that something is broken.
func TestWhatWasNotReadIsNeverWell(t *testing.T) {
	for _, mode := range []string{Shadow, Companion, Replace} {
		whole := Examine(well(mode))
		for set := range 1 << len(unread) {
			f, lost, unknown := well(mode), []string{}, []string{}
			f.Errors = map[string]string{}
			for i, u := range unread {
				if set&(1<<i) != 0 {
					u.lose(&f)
					f.Errors[u.fact] = "may not read " + u.fact
					lost, unknown = append(lost, u.fact), append(unknown, u.unknown[mode]...)
				}
			}
			findings := Examine(f)
			for _, one := range findings {
				switch {
				case slices.Contains(unknown, one.About) && one.Grade == Unknown:
					if !slices.ContainsFunc(lost, func(fact string) bool { return strings.Contains(one.Says, "may not read "+fact) }) {
						t.Errorf("%s mode without %v: %+v does not say why", mode, lost, one)
					}
				case !slices.ContainsFunc(whole, func(w Finding) bool { return w == one }):
					t.Errorf("%s mode without %v: %+v, which is found of nothing that was read", mode, lost, one)
				}
			}
			for _, about := range unknown {
				if !slices.ContainsFunc(findings, func(one Finding) bool { return one.About == about && one.Grade == Unknown }) {
					t.Errorf("%s mode without %v: %s is taken for known", mode, lost, about)
				}
			}
		}
	}
}

// TestNoneIsNotTheSameAsNotRead, in JSON, too: scripts go by it.
func TestNoneIsNotTheSameAsNotRead(t *testing.T) {
	none := time.Duration(0)
	for name, f := range map[string]Facts{
		"not read": {Mode: Companion},
		"none": {Mode: Companion, Managers: &[]Manager{}, Flags: &Flags{}, WeirLease: &Lease{}, ManagerLease: &Lease{}, Canary: &none, Waiting: &[]Waiting{},
			Webhooks: &[]string{}, Policies: &[]Policy{}, Definitions: &[]string{}, Admission: &[]Admission{}},
	} {
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		var read Facts
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(f, read); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, text, diff)
		}
		if diff := cmp.Diff(Examine(f), Examine(read)); diff != "" {
			t.Errorf("%s: other findings (-want +got):\n%s", name, diff)
		}
	}
}

// What a script reads of a finding has names that stay.
func TestAFindingIsAnObjectOfFourFields(t *testing.T) {
	text, err := json.Marshal([]Finding{{"mode", OK, "fits", ""}, {"brake", Problem, "no", "do it"}})
	if want := `[{"about":"mode","grade":"ok","says":"fits"},{"about":"brake","grade":"problem","says":"no","do":"do it"}]`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}

// TestTheSameFactsAreTheSameFindings: a diff of two runs shows what has changed in the cluster, and
// nothing else.
func TestTheSameFactsAreTheSameFindings(t *testing.T) {
	f := well(Replace)
	for i := range f.Rights {
		f.Rights[i].Error = fmt.Sprint("error ", i%5)
	}
	first := Examine(f)
	for range 20 {
		if diff := cmp.Diff(first, Examine(f)); diff != "" {
			t.Fatalf("(-first +other):\n%s", diff)
		}
	}
	errors := map[string]int{}
	for _, one := range first {
		if one.About == "permission" {
			errors[one.Says]++
			if one.Grade != Unknown {
				t.Errorf("%+v, and not one was looked up", one)
			}
		}
	}
	n := len(f.Rights)
	want := map[string]int{}
	for i := range 5 {
		want[fmt.Sprintf("%d permissions could not be looked up: error %d", (n-i+4)/5, i)] = 1
	}
	if !maps.Equal(want, errors) {
		t.Errorf("%v, want %v", errors, want)
	}
}
