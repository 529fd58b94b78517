package doctor

import (
	"encoding/json"
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
	f := Facts{
		Mode: mode, Server: "v1.36.3", Major: 1, Minor: 36, Canary: canary, Asked: &Asked{"True", "it is asked"},
		Managers:     []Manager{{"kube-controller-manager-a", controllers, "system:gc"}},
		ManagerLease: Lease{Holder: "a", Renewed: time.Second}, WeirLease: Lease{Holder: "weir-1", Renewed: time.Second},
		User: "system:serviceaccount:weir-system:weir-controller", Webhooks: []string{"validating weir", "mutating weir"},
	}
	if mode == Shadow {
		f.WeirLease, f.Webhooks, f.Asked = Lease{}, nil, nil
	}
	return f
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
		"too old":                       {Companion, func(f *Facts) { f.Server, f.Minor = "v1.29.1", 29 }, []string{"problem Kubernetes: v1.29.1 is older than 1.30"}},
		"newer than tested":             {Companion, func(f *Facts) { f.Server, f.Minor = "v1.37.0", 37 }, []string{"warning Kubernetes: v1.37.0 is newer"}},
		"the flags came back": {Replace, func(f *Facts) { f.Canary = 0; f.Managers[0].Controllers = "*" }, []string{
			"problem garbage collector: kube-controller-manager-a runs with --controllers=*", "problem namespace controller: kube-controller-manager-a runs with --controllers=*"}},
		"what happens counts more than flags": {Replace, func(f *Facts) { f.Canary = young; f.Tried = &Tried{Deleted: true, Took: time.Second} }, []string{
			"problem garbage collector: deleted after 1s"}},
		"Weir deletes what is tried, too": {Replace, func(f *Facts) { f.Tried = &Tried{Deleted: true, Took: time.Second} }, nil},
		"the built-in collector is silent": {Companion, func(f *Facts) { f.Canary = old }, []string{
			"problem garbage collector: weir-collector-canary has stood for 1h0m0s"}},
		"it is silent, as was tried": {Companion, func(f *Facts) { f.Tried = &Tried{Took: 30 * time.Second} }, []string{"problem garbage collector: stood for 30s"}},
		"companion, and both are off": {Companion, func(f *Facts) {
			f.Managers[0].Controllers = "*,-garbagecollector,-namespace"
		}, []string{"problem garbage collector: which has no garbage collector", "problem namespace controller: which has no namespace controller"}},
		"the built-in namespace controller is silent": {Companion, func(f *Facts) { f.Waiting = []Waiting{{"a", time.Minute}, {"shop", time.Hour}} }, []string{
			"problem namespace controller: none works: namespace shop has been Terminating for 1h0m0s, and no namespace controller has begun with it, nor with 1 others"}},
		"no namespace waits": {Companion, func(f *Facts) { f.Waiting = []Waiting{} }, nil},
		"managed": {Companion, func(f *Facts) { f.Managers = nil }, []string{
			"unknown garbage collector: a holds its Lease", "unknown namespace controller: a holds its Lease"}},
		"managed, and replace is wanted": {Replace, func(f *Facts) { f.Managers, f.ManagerLease = nil, Lease{} }, []string{
			"unknown namespace controller: no kube-controller-manager is seen", "warning mode: can hardly be turned off"}},
		"nobody leads":                       {Companion, func(f *Facts) { f.WeirLease = Lease{} }, []string{"warning controller: no controller of Weir holds"}},
		"the leader is gone":                 {Companion, func(f *Facts) { f.WeirLease.Expired, f.WeirLease.Renewed = true, time.Minute }, []string{"problem controller: has not renewed it for 1m0s"}},
		"the webhook is not reached":         {Companion, func(f *Facts) { f.Asked = &Asked{"False", "it cannot be reached"} }, []string{"problem webhook: it cannot be reached"}},
		"whether it is cannot be determined": {Companion, func(f *Facts) { f.Asked = &Asked{"Unknown", "may not delete"} }, []string{"unknown webhook: may not delete"}},
		"others are let through by name": {Replace, func(f *Facts) {
			f.Admission = []Admission{{"ValidatingAdmissionPolicy/fixed", "system:serviceaccount:kube-system:"}}
		}, []string{
			"warning ValidatingAdmissionPolicy/fixed: its conditions name system:serviceaccount:kube-system: and not Weir's controller"}},
		"in shadow mode nothing is refused": {Shadow, func(f *Facts) {
			f.Admission = []Admission{{"ValidatingAdmissionPolicy/fixed", "generic-garbage-collector"}}
		}, nil},
		"namespaces are left to the built-in controller, as is wanted": {Replace, func(f *Facts) {
			f.LeavesNamespaces, f.Managers[0].Controllers = true, "*,-garbage-collector-controller"
		}, nil},
		"they are left to it, and it collects, too": {Replace, func(f *Facts) {
			f.LeavesNamespaces, f.Managers[0].Controllers, f.Canary = true, "*", 0
		}, []string{"problem garbage collector: does not work beside another"}},
		"they are left to one that is off": {Replace, func(f *Facts) { f.LeavesNamespaces = true }, []string{
			"problem namespace controller: and Weir runs with --drain-namespaces=false: namespaces stay Terminating"}},
		"what was to be tried failed": {Companion, func(f *Facts) { f.Managers, f.Errors = nil, map[string]string{"try": "quota is used up"} }, []string{
			"unknown garbage collector: --try failed: quota is used up", "unknown namespace controller: a holds its Lease"}},
		"nothing may be read": {Companion, func(f *Facts) {
			*f = Facts{Mode: Companion, Server: "v1.36.3", Major: 1, Minor: 36, Errors: map[string]string{"managers": "no pods", "weirLease": "no lease", "webhooks": "no hooks", "admission": "no policies"}}
		}, []string{"unknown garbage collector: no pods", "unknown namespace controller: no pods", "unknown mode: no pods", "unknown controller: no lease",
			"unknown webhook: no hooks", "unknown admission: no policies"}},
		"the installed mode is not known": {Companion, func(f *Facts) { f.Errors = map[string]string{"flags": "no deployments"} }, []string{
			"unknown mode: companion is assumed: no deployments"}},
		"the API server asks no webhook": {Companion, func(f *Facts) { f.Webhooks, f.Asked = nil, nil }, []string{"warning webhook: there is no webhook configuration weir"}},
		"another installation has left its webhook": {Companion, func(f *Facts) { f.WeirLease, f.Asked.Status, f.Asked.Says = Lease{}, "False", "refused" }, []string{
			"warning controller: no controller of Weir holds", "warning webhook: validating weir and mutating weir are there, and no controller of Weir keeps them: they are of another installation (--namespace), or left over from one"}},
		"so it is in shadow mode": {Shadow, func(f *Facts) { f.Webhooks = []string{"validating weir"} }, []string{"warning webhook: left over from one"}},
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
		f.Canary = stood
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
			f.Waiting = waiting
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
		f.Canary, f.Managers = 0, c.managers
		for about, want := range c.want {
			if got := found(t, f, about); !strings.Contains(got.Says, want) {
				t.Errorf("%s: %+v, want %q", name, got, want)
			}
		}
	}
}

// A Lease of kube-controller-manager's says that one runs, elsewhere, as long as it is held.
func TestAManagerThatIsNoPodIsSeenByItsLease(t *testing.T) {
	for want, l := range map[string]Lease{
		"kube-controller-manager runs (m-1 holds its Lease), outside of the cluster, and its flags are not known": {Holder: "m-1", Renewed: time.Second},
		"no kube-controller-manager is seen, neither as a pod of kube-system nor by its Lease":                    {Holder: "m-1", Renewed: time.Hour, Expired: true},
	} {
		for _, lease := range []Lease{l, {}} {
			f := well(Companion)
			f.Managers, f.ManagerLease, f.Canary = nil, lease, 0
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
		"no collector":            {Companion, func(f *Facts) { f.Managers[0].Controllers = "-garbagecollector,*" }, "garbage collector", "see the log of kube-controller-manager, or run Weir in replace mode"},
		"no namespace controller": {Companion, func(f *Facts) { f.Managers[0].Controllers = "-namespace,*" }, "namespace controller", "turn it on, or run Weir in replace mode"},
		"nor in shadow mode":      {Shadow, func(f *Facts) { f.Managers[0].Controllers = "-namespace,*" }, "namespace controller", "turn it on, or run Weir in replace mode"},
		"nor in replace mode":     {Replace, func(f *Facts) { f.LeavesNamespaces = true }, "namespace controller", "turn it on, or run Weir with --drain-namespaces"},
		"it cannot be seen":       {Replace, func(f *Facts) { f.Managers, f.ManagerLease, f.Canary = nil, Lease{}, 0 }, "garbage collector", "run it with --try, which creates a ConfigMap whose owner never existed, and waits for its end"},
		"the leader is gone":      {Companion, func(f *Facts) { f.WeirLease.Expired = true }, "controller", "see the logs of weir-controller; if Weir is not to come back, weir release removes its finalizer from all objects"},
	} {
		f := well(c.mode)
		f.Asked = nil // one finding about the webhook is enough
		c.change(&f)
		if got := found(t, f, c.about); got.Do != c.want {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

// A script reads a finding by names that stay.
func TestAFindingIsAnObjectOfFourFields(t *testing.T) {
	text, err := json.Marshal([]Finding{{"mode", OK, "fits", ""}, {"brake", Problem, "no", "do it"}})
	if want := `[{"about":"mode","grade":"ok","says":"fits"},{"about":"brake","grade":"problem","says":"no","do":"do it"}]`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}
