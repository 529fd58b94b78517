package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writes are the rights with which something can be changed.
func writes(needs []Need) (out []string) {
	for _, n := range needs {
		if !slices.Contains([]string{"get", "list", "watch"}, n.Verb) {
			out = append(out, n.String())
		}
	}
	return out
}

// TestEachModeNeedsWhatTheOneBeforeNeeds, and more: whoever goes from shadow to companion to
// replace mode grants rights, and takes none away. Shadow mode needs none with which something
// could be changed.
func TestEachModeNeedsWhatTheOneBeforeNeeds(t *testing.T) {
	if w := writes(Needs(Shadow, "weir-system", true)); len(w) > 0 {
		t.Errorf("shadow mode needs %q", w)
	}
	before := []Need{}
	for _, needs := range [][]Need{Needs(Shadow, "weir-system", true), Needs(Companion, "weir-system", true), Needs(Replace, "weir-system", true)} {
		for _, n := range before {
			if !slices.Contains(needs, n) {
				t.Errorf("%s is not needed any more", n)
			}
		}
		seen := map[string]bool{}
		for _, n := range needs {
			if n.For == "" || seen[n.String()] {
				t.Errorf("%s is looked at twice, or nothing says what for", n)
			}
			seen[n.String()] = true
		}
		before = needs
	}
}

// TestWhatOnlyOneWhoDrainsNeeds: with --drain-namespaces=false the chart grants none of this.
func TestWhatOnlyOneWhoDrainsNeeds(t *testing.T) {
	less := func(mode string) (out []string) {
		drains, leaves := Needs(mode, "weir-system", true), Needs(mode, "weir-system", false)
		for _, n := range leaves {
			if !slices.Contains(drains, n) {
				t.Errorf("%s mode: %s is needed only where namespaces are left", mode, n)
			}
		}
		for _, n := range drains {
			if !slices.Contains(leaves, n) {
				out = append(out, n.String())
			}
		}
		slices.Sort(out)
		return out
	}
	want := []string{"list leases.coordination.k8s.io -n kube-system", "patch namespaces/status", "update namespaces/finalize"}
	if diff := cmp.Diff(want, less(Replace)); diff != "" {
		t.Errorf("replace mode (-want +got):\n%s", diff)
	}
	for _, mode := range []string{Shadow, Companion} { // a DrainPolicy is of the chart's rights there
		if n := less(mode); len(n) > 0 {
			t.Errorf("%s mode: %q", mode, n)
		}
	}
}

// The controller's own things are in its namespace, and nothing of them is looked for in another.
func TestWhatIsNeededWhereWeirRuns(t *testing.T) {
	var home []string
	for _, n := range Needs(Companion, "elsewhere", true) {
		switch n.Namespace {
		case "elsewhere":
			home = append(home, n.String())
		case "":
		default:
			t.Errorf("%s", n)
		}
	}
	slices.Sort(home)
	want := []string{
		"create configmaps -n elsewhere", "create leases.coordination.k8s.io -n elsewhere", // create cannot be restricted by name
		"delete configmaps weir-collector-canary -n elsewhere", "get configmaps weir-collector-canary -n elsewhere",
		"get leases.coordination.k8s.io weir-controller -n elsewhere", "update leases.coordination.k8s.io weir-controller -n elsewhere",
	}
	if diff := cmp.Diff(want, home); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatAMigrationLeaseNeeds(t *testing.T) {
	var got []string
	for _, n := range LeaseNeeds("kube-system/collectors") {
		got = append(got, n.String())
		if n.For != "the migration Lease" {
			t.Errorf("%s is for %q", n, n.For)
		}
	}
	want := []string{"get leases.coordination.k8s.io collectors -n kube-system", "update leases.coordination.k8s.io collectors -n kube-system",
		"create leases.coordination.k8s.io -n kube-system"} // which cannot be restricted by name
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each right that is missing is a finding of its own, and one that could not be looked up is no
// right, nor a missing one.
func TestRights(t *testing.T) {
	right := func(verb string, allowed bool, err string) Right {
		return Right{Need: Need{Verb: verb, Resource: "pods", For: "x"}, Allowed: allowed, Error: err}
	}
	for name, c := range map[string]struct {
		rights []Right
		want   []string
	}{
		"none are looked at": {nil, nil},
		"all are there":      {[]Right{right("get", true, ""), right("list", true, "")}, []string{"ok ServiceAccount weir-system/weir-controller has all 2 that are looked at for companion mode"}},
		"two are missing": {[]Right{right("get", false, ""), right("list", true, ""), right("watch", false, "")}, []string{
			"problem ServiceAccount weir-system/weir-controller may not get pods, which is needed for x",
			"problem ServiceAccount weir-system/weir-controller may not watch pods, which is needed for x"}},
		"one is missing, and one is not known": {[]Right{right("get", false, "timeout"), right("list", false, "")}, []string{
			"problem ServiceAccount weir-system/weir-controller may not list pods, which is needed for x",
			"unknown 1 permissions could not be looked up: timeout"}},
		"an answer with an error is none": {[]Right{right("get", true, "timeout")}, []string{"unknown 1 permissions could not be looked up: timeout"}},
	} {
		f := well(Companion)
		f.Rights = c.rights
		var got []string
		for _, one := range Examine(f) {
			if one.About == "permission" {
				got = append(got, string(one.Grade)+" "+one.Says)
				if (one.Grade == Problem) != strings.HasPrefix(one.Do, "grant it: ") {
					t.Errorf("%s: %+v", name, one)
				}
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What is wrong comes with what can be done about it in the mode that is asked about: each of these
// would be wrong advice in another.
func TestWhatToDo(t *testing.T) {
	none := []Manager{}
	for name, c := range map[string]struct {
		mode   string
		change func(*Facts)
		about  string
		want   string // all of it
	}{
		"two collectors": {Replace, func(f *Facts) { f.Canary = nil; (*f.Managers)[0].Controllers = "*" }, "garbage collector",
			"append -garbage-collector-controller,-namespace-controller to kube-controller-manager's --controllers (* by default), or run Weir in companion mode"},
		"two namespace controllers": {Replace, func(f *Facts) { (*f.Managers)[0].Controllers = "*" }, "namespace controller",
			"turn it off (append -namespace-controller to kube-controller-manager's --controllers), or run Weir with --drain-namespaces=false"},
		"no collector":            {Companion, func(f *Facts) { (*f.Managers)[0].Controllers = "-garbagecollector,*" }, "garbage collector", "see the log of kube-controller-manager, or run Weir in replace mode"},
		"no namespace controller": {Companion, func(f *Facts) { (*f.Managers)[0].Controllers = "-namespace,*" }, "namespace controller", "turn it on, or run Weir in replace mode"},
		"nor in shadow mode":      {Shadow, func(f *Facts) { (*f.Managers)[0].Controllers = "-namespace,*" }, "namespace controller", "turn it on, or run Weir in replace mode"},
		"nor in replace mode":     {Replace, func(f *Facts) { f.Flags.LeavesNamespaces = true }, "namespace controller", "turn it on, or run Weir with --drain-namespaces"},
		"it cannot be seen":       {Replace, func(f *Facts) { f.Managers, f.ManagerLease, f.Canary = &none, nil, nil }, "garbage collector", "run it with --try, which creates a ConfigMap whose owner never existed, and waits for its end"},
		"the leader is gone":      {Companion, func(f *Facts) { f.WeirLease.Expired = true }, "controller", "see the logs of weir-controller; if Weir is not to come back, weir release removes its finalizer from all objects"},
		"the Lease is free":       {Replace, migrating(&Lease{}), "migration Lease", "see that a controller of Weir leads, or start the kube-controller-manager that waits for this Lease"},
		"its holder is gone":      {Replace, migrating(&Lease{Holder: "x", Expired: true}), "migration Lease", "see that a controller of Weir leads: it takes the Lease over"},
		"another holds it":        {Replace, migrating(&Lease{Holder: "x"}), "migration Lease", "end that process, or run it without the garbage collector and the namespace controller, when Weir is to take over"},
		"Weir holds it":           {Replace, migrating(&Lease{Holder: "weir_web-1_1"}), "migration Lease", ""},
		"policies are asked for":  {Companion, func(f *Facts) { f.Webhooks = &[]string{} }, "webhook", "see that a controller leads; it writes them"},
	} {
		f := well(c.mode)
		f.Asked = nil // one finding about the webhook is enough
		c.change(&f)
		if got := found(t, f, c.about); got.Do != c.want {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}
