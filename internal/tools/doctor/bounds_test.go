package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// found is what is said about one thing, if it is said once.
func found(t *testing.T, f Facts, about string) Finding {
	t.Helper()
	all := slices.DeleteFunc(Examine(f), func(one Finding) bool { return one.About != about })
	if len(all) != 1 {
		t.Fatalf("%s: %+v", about, all)
	}
	return all[0]
}

// The oldest and the newest version that are tested are supported, and so they are well. What calls
// itself otherwise is not known.
func TestVersionsAtTheBounds(t *testing.T) {
	for _, c := range []struct {
		major, minor int
		want         Grade
	}{{1, oldest - 1, Problem}, {1, oldest, OK}, {1, newest, OK}, {1, newest + 1, Warning}, {2, oldest, Unknown}, {1, 0, Unknown}, {0, 0, Unknown}} {
		f := well(Companion)
		f.Major, f.Minor = c.major, c.minor
		if got := found(t, f, "Kubernetes"); got.Grade != c.want {
			t.Errorf("%d.%d: %+v, want %s", c.major, c.minor, got, c.want)
		}
	}
}

// A canary says something once any collector would have come to it: the built-in one may be busy
// for seconds.
func TestACanaryCountsWhenItHasStoodForHalfAMinute(t *testing.T) {
	for stood, want := range map[time.Duration]string{
		0:                                 "kube-controller-manager-a runs with",
		30*time.Second - time.Millisecond: "kube-controller-manager-a runs with",
		30 * time.Second:                  "weir-collector-canary has stood for 30s",
	} {
		f := well(Companion)
		f.Canary = &stood
		if got := found(t, f, "garbage collector"); !strings.Contains(got.Says, want) {
			t.Errorf("after %s: %+v, want %q", stood, got, want)
		}
	}
}

// The namespace that has waited longest stands for all.
func TestNamespacesThatWait(t *testing.T) {
	for want, waiting := range map[string][]Waiting{
		"none works: namespace a has been Terminating for 1m0s, and no namespace controller has begun with it":                      {{"a", time.Minute}},
		"none works: namespace b has been Terminating for 2h0m0s, and no namespace controller has begun with it, nor with 1 others": {{"a", time.Minute}, {"b", 2 * time.Hour}},
		"none works: namespace c has been Terminating for 3h0m0s, and no namespace controller has begun with it, nor with 2 others": {{"c", 3 * time.Hour}, {"a", time.Minute}, {"b", 2 * time.Hour}},
	} {
		for mode, do := range map[string]string{Companion: "see the log of kube-controller-manager, or run Weir in replace mode", Replace: "see the log of the weir-controller that leads"} {
			f := well(mode)
			f.Waiting = &waiting
			if diff := cmp.Diff(Finding{"namespace controller", Problem, want, do}, found(t, f, "namespace controller")); diff != "" {
				t.Errorf("%s mode (-want +got):\n%s", mode, diff)
			}
		}
	}
}

// One of several kube-controller-managers that works is enough, whichever it is: they take over
// from each other.
func TestSeveralManagers(t *testing.T) {
	const on, off = "*", "*,-garbage-collector-controller,-namespace-controller"
	for name, c := range map[string]struct {
		managers []Manager
		want     map[string]string // what is said, in replace mode
	}{
		"the second works": {[]Manager{{"a", off, "system:gc"}, {"b", on, "system:gc"}}, map[string]string{
			"garbage collector":    "a garbage collector works that is not Weir (b runs with --controllers=*)",
			"namespace controller": "one works that is not Weir (b runs with --controllers=*)"}},
		"each does one": {[]Manager{{"a", "*,-namespace", "system:gc"}, {"b", "*,-garbagecollector", "system:gc"}}, map[string]string{
			"garbage collector":    "(a runs with --controllers=*,-namespace)",
			"namespace controller": "(b runs with --controllers=*,-garbagecollector)"}},
		"none does": {[]Manager{{"a", off, "system:gc"}, {"b", off, "system:gc"}}, map[string]string{
			"garbage collector":    "none works but Weir (a runs with --controllers=" + off + ", which has no garbage collector)",
			"namespace controller": "none works but Weir (a runs with --controllers=" + off + ", which has no namespace controller)"}},
	} {
		f := well(Replace)
		f.Canary, f.Managers = nil, &c.managers
		for about, want := range c.want {
			if got := found(t, f, about); !strings.Contains(got.Says, want) {
				t.Errorf("%s: %+v, want %q", name, got, want)
			}
		}
	}
}

// A manager that does not collect deletes nothing that could be held: only those that do must be
// named.
func TestBrakeUsersAreThoseWhoCollect(t *testing.T) {
	for name, c := range map[string]struct {
		managers []Manager
		want     Grade
		says     string
	}{
		"who collects is named":     {[]Manager{{"a", "*", "system:gc"}}, OK, "the webhook holds deletes above the limits by ada, system:gc"},
		"who does not, need not be": {[]Manager{{"a", "*", "system:gc"}, {"b", "*,-garbagecollector", "bob"}}, OK, "the webhook holds deletes above"},
		"the second is not":         {[]Manager{{"a", "*", "system:gc"}, {"b", "*", "bob"}}, Warning, "b deletes as bob, which is not among the users whose deletes are held (ada, system:gc): its deletes are not held"},
		"they are not seen":         {nil, Unknown, "the webhook holds deletes above the limits by ada, system:gc; cannot tell whether the cluster's garbage collector is one of them"},
	} {
		f := well(Companion)
		f.Managers, f.Flags.BrakeUsers = &c.managers, []string{"ada", "system:gc"}
		if got := found(t, f, "brake"); got.Grade != c.want || !strings.HasPrefix(got.Says, c.says) || (got.Do != "") != (c.want == Warning) {
			t.Errorf("%s: %+v, want %s: %s", name, got, c.want, c.says)
		}
		f.Managers = nil // as may be, without rights
		if got := found(t, f, "brake"); got.Grade != Unknown {
			t.Errorf("%s, and unread: %+v", name, got)
		}
	}
}

// A Lease of kube-controller-manager's says that one runs, elsewhere, as long as it is held.
func TestAManagerThatIsNoPodIsSeenByItsLease(t *testing.T) {
	for want, l := range map[string]*Lease{
		"kube-controller-manager runs (m-1 holds its Lease), outside of the cluster, and its flags are not known": {Holder: "m-1", Renewed: time.Second},
		"no kube-controller-manager is seen, neither as a pod of kube-system nor by its Lease":                    {Holder: "m-1", Renewed: time.Hour, Expired: true},
	} {
		for _, lease := range []*Lease{l, {}, nil} {
			f := well(Companion)
			f.Managers, f.ManagerLease, f.Canary = &[]Manager{}, lease, nil
			says := want
			if lease != l {
				says = "no kube-controller-manager is seen"
			}
			if got := found(t, f, "garbage collector"); got.Grade != Unknown || !strings.Contains(got.Says, says) || !strings.Contains(got.Do, "--try") {
				t.Errorf("%+v, want %q", got, says)
			}
		}
	}
}
