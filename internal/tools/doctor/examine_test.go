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
	f := Facts{
		Mode: mode, Server: "v1.36.3", Major: 1, Minor: 36, Managers: &[]Manager{{"kube-controller-manager-a", controllers, "system:gc"}}, Flags: &Flags{}, Asked: &Asked{"True", "it is asked"}, Canary: &canary,
		ManagerLease: &Lease{Holder: "a", Renewed: time.Second}, WeirLease: &Lease{Holder: "weir-1", Renewed: time.Second},
		RightsOf: "ServiceAccount weir-system/weir-controller", User: "system:serviceaccount:weir-system:weir-controller", Admission: &[]Admission{},
		Webhooks: &[]string{"validating weir", "mutating weir"}, Policies: &[]Policy{{Name: "DeletionPolicy/safe"}},
		Definitions: &[]string{"deletionpolicies", "deletionpolicies/status", "ownerreferencepolicies", "drainpolicies", "heldcollections"},
	}
	for _, n := range Needs(mode, "weir-system", true) {
		f.Rights = append(f.Rights, Right{Need: n, Allowed: true})
	}
	return f
}

// migrating has the controller wait for a Lease.
func migrating(l *Lease) func(*Facts) {
	return func(f *Facts) { f.Flags.MigrationLease, f.MigrationLease = "kube-system/collectors", l }
}

func TestExamine(t *testing.T) {
	var none []Manager
	young, old := 5*time.Second, time.Hour
	for name, c := range map[string]struct {
		mode   string
		change func(*Facts)
		want   []string // findings that are not ok: grade, about, and words of what they say
	}{
		"all is well in companion mode": {Companion, func(*Facts) {}, nil},
		"all is well in replace mode":   {Replace, func(*Facts) {}, nil},
		"all is well in shadow mode":    {Shadow, func(f *Facts) { f.WeirLease, f.Webhooks, f.Policies = &Lease{}, &[]string{}, &[]Policy{} }, nil},
		"too old":                       {Companion, func(f *Facts) { f.Server, f.Minor = "v1.29.1", 29 }, []string{"problem Kubernetes: v1.29.1 is older than 1.30"}},
		"newer than tested":             {Companion, func(f *Facts) { f.Server, f.Minor = "v1.37.0", 37 }, []string{"warning Kubernetes: v1.37.0 is newer"}},
		"the flags came back": {Replace, func(f *Facts) { f.Canary = nil; (*f.Managers)[0].Controllers = "*" }, []string{
			"problem garbage collector: kube-controller-manager-a runs with --controllers=*", "problem namespace controller: kube-controller-manager-a runs with --controllers=*"}},
		"what happens counts more than flags": {Replace, func(f *Facts) { f.Canary = &young; f.Tried = &Tried{Deleted: true, Took: time.Second} }, []string{
			"problem garbage collector: deleted after 1s"}},
		"Weir deletes what is tried, too": {Replace, func(f *Facts) { f.Tried = &Tried{Deleted: true, Took: time.Second} }, nil},
		"the built-in collector is silent": {Companion, func(f *Facts) { f.Canary = &old }, []string{
			"problem garbage collector: weir-collector-canary has stood for 1h0m0s"}},
		"it is silent, as was tried": {Companion, func(f *Facts) { f.Tried = &Tried{Took: 30 * time.Second} }, []string{"problem garbage collector: stood for 30s"}},
		"companion, and both are off": {Companion, func(f *Facts) {
			(*f.Managers)[0].Controllers = "*,-garbagecollector,-namespace"
		}, []string{"problem garbage collector: which has no garbage collector", "problem namespace controller: which has no namespace controller"}},
		"the built-in namespace controller is silent": {Companion, func(f *Facts) { f.Waiting = &[]Waiting{{"a", time.Minute}, {"shop", time.Hour}} }, []string{
			"problem namespace controller: none works: namespace shop has been Terminating for 1h0m0s, and no namespace controller has begun with it, nor with 1 others"}},
		"no namespace waits": {Companion, func(f *Facts) { f.Waiting = &[]Waiting{} }, nil},
		"managed": {Companion, func(f *Facts) { f.Managers = &none }, []string{
			"unknown garbage collector: a holds its Lease", "unknown namespace controller: a holds its Lease"}},
		"managed, and replace is wanted": {Replace, func(f *Facts) { f.Managers, f.ManagerLease = &none, &Lease{} }, []string{
			"unknown namespace controller: no kube-controller-manager is seen", "warning mode: can hardly be turned off"}},
		"what was to be tried failed": {Companion, func(f *Facts) { f.Managers, f.Errors = &none, map[string]string{"try": "quota is used up"} }, []string{
			"unknown garbage collector: --try failed: quota is used up", "unknown namespace controller: a holds its Lease"}},
		"an administrator looks before Weir is installed": {Companion, func(f *Facts) { f.RightsOf, f.Rights[4].Allowed = "", false }, []string{
			"problem permission: your own user (there is no ServiceAccount weir-controller) may not delete *.*"}},
		"nothing may be read": {Companion, func(f *Facts) {
			*f = Facts{Mode: Companion, Server: "v1.36.3", Major: 1, Minor: 36, Errors: map[string]string{"managers": "pods is forbidden"}, Rights: []Right{{Error: "no"}, {Error: "no"}}}
		}, []string{
			"unknown garbage collector: pods is forbidden", "unknown namespace controller: pods is forbidden", "unknown mode: pods is forbidden", "unknown controller: not looked at",
			"unknown flags: not looked at",
			"unknown permission: 2 permissions could not be looked up: no", "unknown policies: not looked at", "unknown policies: not looked at", "unknown webhook: not looked at",
			"unknown admission: not looked at",
		}},
		"nobody leads":            {Companion, func(f *Facts) { f.WeirLease = &Lease{} }, []string{"warning controller: no controller of Weir holds"}},
		"the leader is gone":      {Companion, func(f *Facts) { f.WeirLease.Expired, f.WeirLease.Renewed = true, time.Minute }, []string{"problem controller: has not renewed it for 1m0s"}},
		"a permission is missing": {Companion, func(f *Facts) { f.Rights[4].Allowed = false }, []string{"problem permission: ServiceAccount weir-system/weir-controller may not delete *.*"}},
		"a policy is broken": {Companion, func(f *Facts) {
			f.Policies = &[]Policy{{Name: "DeletionPolicy/safe", Bad: []Bad{{"Ready", "Invalid", "spec: no", true}, {"Resolved", "NotServed", "podz", false}}}}
		}, []string{"problem DeletionPolicy/safe: Ready is False (Invalid): spec: no", "warning DeletionPolicy/safe: Resolved is False (NotServed): podz"}},
		"whether policies are in force is not known": {Companion, func(f *Facts) {
			f.Policies = &[]Policy{{Name: "DeletionPolicy/new", Unknown: "no controller has looked at it"}, {Name: "DeletionPolicy/safe"}}
		}, []string{"unknown DeletionPolicy/new: cannot tell whether it is in force: no controller has looked at it"}},
		"shadow mode enforces no policy, whatever its status says": {Shadow, func(f *Facts) {
			f.Webhooks, f.Policies = &[]string{}, &[]Policy{{Name: "DeletionPolicy/left", Unknown: "no controller has looked at it"}, {Name: "DeletionPolicy/safe", Bad: []Bad{{"Enforced", "NotAsked", "no", true}}}}
		}, nil},
		"the API server asks no webhook":     {Companion, func(f *Facts) { f.Webhooks = &[]string{} }, []string{"problem webhook: no webhook configuration"}},
		"nobody is to be asked, either":      {Companion, func(f *Facts) { f.Webhooks, f.Policies = &[]string{}, &[]Policy{} }, nil},
		"the definitions are not there":      {Companion, func(f *Facts) { f.Definitions = &[]string{"drainpolicies", "heldcollections"} }, []string{"warning policies: deletionpolicies, ownerreferencepolicies"}},
		"the webhook is not reached":         {Companion, func(f *Facts) { f.Asked = &Asked{"False", "it cannot be reached"} }, []string{"problem webhook: it cannot be reached"}},
		"whether it is cannot be determined": {Companion, func(f *Facts) { f.Asked = &Asked{"Unknown", "may not delete"} }, []string{"unknown webhook: may not delete"}},
		"in shadow mode there is none":       {Shadow, func(f *Facts) { f.Asked = &Asked{"False", "no"} }, nil},
		"others are let through by name": {Replace, func(f *Facts) {
			f.Admission = &[]Admission{{"ValidatingAdmissionPolicy/fixed", "system:serviceaccount:kube-system:"}}
		}, []string{
			"warning ValidatingAdmissionPolicy/fixed: its conditions name system:serviceaccount:kube-system: and not Weir's controller"}},
		"in shadow mode nothing is refused": {Shadow, func(f *Facts) {
			f.Admission = &[]Admission{{"ValidatingAdmissionPolicy/fixed", "generic-garbage-collector"}}
		}, nil},
		"HeldCollections are not there": {Companion, func(f *Facts) { *f.Definitions = (*f.Definitions)[:4] }, []string{"warning brake: does not serve heldcollections"}},
		"nor in replace mode":           {Replace, func(f *Facts) { *f.Definitions = (*f.Definitions)[:4] }, []string{"problem brake: the API server does not serve heldcollections: users cannot see what is held, nor decide about it"}},
		"nor where others are held": {Companion, func(f *Facts) {
			*f.Definitions, f.Flags.BrakeUsers = (*f.Definitions)[:4], []string{"system:gc"}
		}, []string{"problem brake: does not serve heldcollections"}},
		"the built-in collector is held": {Companion, func(f *Facts) { f.Flags.BrakeUsers = []string{"other", "system:gc"} }, nil},
		"one that deletes under another name is not": {Companion, func(f *Facts) { f.Flags.BrakeUsers = []string{"other", "another"} }, []string{
			"warning brake: kube-controller-manager-a deletes as system:gc, which is not among the users whose deletes are held (other, another)"}},
		"one that is not seen may be": {Companion, func(f *Facts) {
			f.Managers, f.Tried, f.Flags.BrakeUsers = &none, &Tried{Deleted: true}, []string{"system:gc"}
		}, []string{
			"unknown namespace controller: a holds its Lease", "unknown brake: cannot tell whether the cluster's garbage collector is one of them"}},
		"brake users are of companion mode":       {Replace, func(f *Facts) { f.Flags.BrakeUsers = []string{"other"} }, nil},
		"Weir collects under the migration Lease": {Replace, migrating(&Lease{Holder: "weir_web-1_1"}), nil},
		"another does":          {Replace, migrating(&Lease{Holder: "kcm-1"}), []string{"warning migration Lease: another process collects under kube-system/collectors (kcm-1), and Weir waits"}},
		"nobody does":           {Replace, migrating(&Lease{}), []string{"problem migration Lease: no replica holds the Lease kube-system/collectors"}},
		"who did is gone":       {Replace, migrating(&Lease{Holder: "kcm-1", Expired: true, Renewed: time.Minute}), []string{"problem migration Lease: has not renewed it for 1m0s"}},
		"who does is not known": {Replace, migrating(nil), []string{"unknown migration Lease: it was not looked at"}},
		"it waits for the migration Lease, or not": {Replace, func(f *Facts) {
			migrating(&Lease{Holder: "weir_web-1_1"})(f)
			f.Canary, (*f.Managers)[0].Controllers = nil, "garbage-collector-controller,namespace-controller"
		}, []string{"warning garbage collector: doctor cannot see whether it waits for the migration Lease", "warning namespace controller: doctor cannot see whether it waits for the migration Lease"}},
		"namespaces are left to the built-in controller, as is wanted": {Replace, func(f *Facts) {
			f.Flags.LeavesNamespaces, (*f.Managers)[0].Controllers = true, "*,-garbage-collector-controller"
		}, nil},
		"they are left to it, and it collects, too": {Replace, func(f *Facts) {
			f.Flags.LeavesNamespaces, (*f.Managers)[0].Controllers, f.Canary = true, "*", nil
		}, []string{"problem garbage collector: does not work beside another"}},
		"they are left to it, whatever the migration Lease is for": {Replace, func(f *Facts) {
			migrating(&Lease{Holder: "weir_web-1_1"})(f)
			f.Flags.LeavesNamespaces, (*f.Managers)[0].Controllers = true, "*,-garbage-collector-controller"
		}, nil},
		"they are left to one that is off": {Replace, func(f *Facts) { f.Flags.LeavesNamespaces = true }, []string{
			"problem namespace controller: and Weir runs with --drain-namespaces=false: namespaces stay Terminating"}},
		"the one that works may be who holds it": {Replace, func(f *Facts) {
			migrating(&Lease{Holder: "kcm-1"})(f)
			f.Canary, f.Tried = &young, &Tried{Deleted: true, Took: time.Second}
		}, []string{"warning garbage collector: doctor cannot see whether it waits", "warning migration Lease: Weir waits for it"}},
		"it does not wait": {Replace, func(f *Facts) {
			migrating(&Lease{Holder: "weir_web-1_1"})(f)
			f.Canary, f.Tried = &young, &Tried{Deleted: true, Took: time.Second}
		}, []string{"problem garbage collector: deleted after 1s"}},
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

// TestPoliciesAreCountedByWhatTheirModeMakesOfThem: what is not known to be in force is not counted
// as such, and in shadow mode nothing is.
func TestPoliciesAreCountedByWhatTheirModeMakesOfThem(t *testing.T) {
	safe := Policy{Name: "DeletionPolicy/safe"}
	for name, c := range map[string]struct {
		mode string
		all  []Policy
		says string // empty: there is no such finding
	}{
		"all in force":              {Companion, []Policy{safe, safe}, "2, all in force"},
		"one is not known to be":    {Companion, []Policy{safe, {Name: "DeletionPolicy/new", Unknown: "so"}}, ""},
		"none":                      {Companion, nil, "there is none"},
		"in shadow mode":            {Shadow, []Policy{safe, {Name: "DeletionPolicy/new", Unknown: "so"}}, "2, and none is enforced: in shadow mode Weir changes nothing, and no webhook is asked"},
		"in shadow mode, and none":  {Shadow, nil, "there is none"},
		"in replace mode, likewise": {Replace, []Policy{safe}, "1, all in force"},
	} {
		f := well(c.mode)
		f.Policies, f.Webhooks = &c.all, &[]string{}
		if c.mode != Shadow && len(c.all) > 0 {
			f.Webhooks = &[]string{"validating weir"}
		}
		says := ""
		for _, one := range Examine(f) {
			if one.About == "policies" && one.Grade == OK {
				says = one.Says
			}
		}
		if says != c.says {
			t.Errorf("%s: %q, want %q", name, says, c.says)
		}
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

func TestRightsAreWrittenAsKubectlTakesThem(t *testing.T) {
	for want, n := range map[string]Need{
		"delete *.*":                 {Verb: "delete", Group: "*", Resource: "*"},
		"update namespaces/finalize": {Verb: "update", Resource: "namespaces/finalize"},
		"get leases.coordination.k8s.io weir-controller -n weir-system": {Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Name: "weir-controller", Namespace: "weir-system"},
		"update deletionpolicies.weir.dev/status":                       {Verb: "update", Group: "weir.dev", Resource: "deletionpolicies/status"},
	} {
		if got := n.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
