package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// well are the facts of a cluster in which all is well in a mode, as kubeadm makes it.
func well(mode string) Facts {
	controllers, canary := "*,bootstrapsigner,tokencleaner", time.Duration(0)
	if mode == Replace {
		controllers, canary = "*,-garbage-collector-controller,-namespace-controller", time.Hour
	}
	return Facts{Mode: mode, Canary: canary, Asked: "True", AskedSays: "it is asked",
		Managers: []Manager{{"kube-controller-manager-a", controllers}}}
}

func TestExamine(t *testing.T) {
	const young, old = 5 * time.Second, time.Hour
	for name, c := range map[string]struct {
		mode   string
		change func(*Facts)
		want   []string // findings that are not ok: grade, about, and words of what they say
	}{
		"all is well in companion mode": {Companion, func(*Facts) {}, nil},
		"all is well in replace mode":   {Replace, func(*Facts) {}, nil},
		"all is well in shadow mode":    {Shadow, func(*Facts) {}, nil},
		"the flags came back": {Replace, func(f *Facts) { f.Canary = 0; f.Managers[0].Controllers = "*" }, []string{
			"problem garbage collector: kube-controller-manager-a runs with --controllers=*", "problem namespace controller: kube-controller-manager-a runs with --controllers=*"}},
		"the built-in collector is silent": {Companion, func(f *Facts) { f.Canary = old }, []string{
			"problem garbage collector: weir-collector-canary has stood for 1h0m0s"}},
		"companion, and both are off": {Companion, func(f *Facts) {
			f.Managers[0].Controllers = "*,-garbagecollector,-namespace"
		}, []string{"problem garbage collector: which has no garbage collector", "problem namespace controller: which has no namespace controller"}},
		"managed": {Companion, func(f *Facts) { f.Managers = nil }, []string{
			"unknown garbage collector: as in managed clusters", "unknown namespace controller: as in managed clusters"}},
		"the webhook is not reached":         {Companion, func(f *Facts) { f.Asked, f.AskedSays = "False", "it cannot be reached" }, []string{"problem webhook: it cannot be reached"}},
		"whether it is cannot be determined": {Companion, func(f *Facts) { f.Asked, f.AskedSays = "Unknown", "may not delete" }, []string{"unknown webhook: may not delete"}},
		"namespaces are left to the built-in controller, as is wanted": {Replace, func(f *Facts) {
			f.LeavesNamespaces, f.Managers[0].Controllers = true, "*,-garbage-collector-controller"
		}, nil},
		"they are left to it, and it collects, too": {Replace, func(f *Facts) {
			f.LeavesNamespaces, f.Managers[0].Controllers, f.Canary = true, "*", 0
		}, []string{"problem garbage collector: does not work beside another"}},
		"they are left to one that is off": {Replace, func(f *Facts) { f.LeavesNamespaces = true }, []string{
			"problem namespace controller: and Weir runs with --drain-namespaces=false: namespaces stay Terminating"}},
		"nothing may be read": {Companion, func(f *Facts) {
			*f = Facts{Mode: Companion, Errors: map[string]string{"managers": "no pods"}, Asked: "Unknown", AskedSays: "no leases"}
		}, []string{"unknown garbage collector: no pods", "unknown namespace controller: no pods", "unknown webhook: no leases"}},
		"in shadow mode no webhook is asked": {Shadow, func(f *Facts) { f.Asked = "False" }, nil},
		"the installed mode is not known": {Companion, func(f *Facts) { f.Errors = map[string]string{"flags": "no deployments"} }, []string{
			"unknown mode: companion is assumed: no deployments"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := well(c.mode)
			c.change(&f)
			var got []string
			for i, one := range slices.DeleteFunc(Examine(f), func(f Finding) bool { return f.Grade == OK }) {
				line := string(one.Grade) + " " + one.About + ": " + one.Says
				if i < len(c.want) {
					if head, words, _ := strings.Cut(c.want[i], ": "); strings.HasPrefix(line, head+": ") && strings.Contains(line, words) {
						line = c.want[i]
					}
				}
				if one.Grade == Problem && one.Do == "" && !strings.Contains(one.About, "/") {
					t.Errorf("%q is a problem, and it is not said what to do", one.Says)
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatControllersRunByTheFlag(t *testing.T) {
	for flag, want := range map[string][2]bool{
		"*": {true, true},
		"*,-garbage-collector-controller,-namespace-controller": {false, false},
		"*,-garbagecollector":                       {false, true}, // the old names
		"-namespace,*":                              {true, false},
		"garbage-collector-controller":              {true, false},
		"namespace-controller, -garbagecollector,*": {false, true},
		"deployment-controller":                     {false, false},
		"":                                          {false, false},
	} {
		m := Manager{Controllers: flag}
		if got := [2]bool{m.collects(), m.drains()}; got != want {
			t.Errorf("--controllers=%s: garbage %t, namespaces %t, want %v", flag, got[0], got[1], want)
		}
	}
}

// found is what is said about one thing, if it is said once.
func found(t *testing.T, f Facts, about string) Finding {
	t.Helper()
	all := slices.DeleteFunc(Examine(f), func(one Finding) bool { return one.About != about })
	if len(all) != 1 {
		t.Fatalf("%s: %+v", about, all)
	}
	return all[0]
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
		f.Canary = stood
		if got := found(t, f, "garbage collector"); !strings.Contains(got.Says, want) {
			t.Errorf("after %s: %+v, want %q", stood, got, want)
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
		"the second works": {[]Manager{{"a", off}, {"b", on}}, map[string]string{
			"garbage collector":    "a garbage collector works that is not Weir (b runs with --controllers=*)",
			"namespace controller": "one works that is not Weir (b runs with --controllers=*)"}},
		"each does one": {[]Manager{{"a", "*,-namespace"}, {"b", "*,-garbagecollector"}}, map[string]string{
			"garbage collector":    "(a runs with --controllers=*,-namespace)",
			"namespace controller": "(b runs with --controllers=*,-garbagecollector)"}},
		"none does": {[]Manager{{"a", off}, {"b", off}}, map[string]string{
			"garbage collector":    "none works but Weir (a runs with --controllers=" + off + ", which has no garbage collector)",
			"namespace controller": "none works but Weir (a runs with --controllers=" + off + ", which has no namespace controller)"}},
	} {
		f := well(Replace)
		f.Canary, f.Managers = 0, c.managers
		for about, want := range c.want {
			if got := found(t, f, about); !strings.Contains(got.Says, want) {
				t.Errorf("%s: %+v, want %q", name, got, want)
			}
		}
	}
}

// What is wrong comes with what can be done about it in the mode that is asked about: each of these
// would be wrong advice in another.
func TestWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		mode   string
		change func(*Facts)
		about  string
		want   string // all of it
	}{
		"two collectors": {Replace, func(f *Facts) { f.Canary = 0; f.Managers[0].Controllers = "*" }, "garbage collector",
			"append -garbage-collector-controller,-namespace-controller to kube-controller-manager's --controllers (* by default), or run Weir in companion mode"},
		"two namespace controllers": {Replace, func(f *Facts) { f.Managers[0].Controllers = "*" }, "namespace controller",
			"turn it off (append -namespace-controller to kube-controller-manager's --controllers), or run Weir with --drain-namespaces=false"},
		"no collector":             {Companion, func(f *Facts) { f.Managers[0].Controllers = "-garbagecollector,*" }, "garbage collector", "see the log of kube-controller-manager, or run Weir in replace mode"},
		"no namespace controller":  {Companion, func(f *Facts) { f.Managers[0].Controllers = "-namespace,*" }, "namespace controller", "turn it on, or run Weir in replace mode"},
		"nor in shadow mode":       {Shadow, func(f *Facts) { f.Managers[0].Controllers = "-namespace,*" }, "namespace controller", "turn it on, or run Weir in replace mode"},
		"nor in replace mode":      {Replace, func(f *Facts) { f.LeavesNamespaces = true }, "namespace controller", "turn it on, or run Weir with --drain-namespaces"},
		"the webhook is not asked": {Companion, func(f *Facts) { f.Asked = "False" }, "webhook", "see the logs of weir-webhook, and the condition Enforced of policies: until then their failurePolicy decides"},
	} {
		f := well(c.mode)
		c.change(&f)
		if got := found(t, f, c.about); got.Do != c.want {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}
