package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Grade says how a finding is to be taken.
type Grade string

// The grades.
const (
	OK      Grade = "ok"
	Warning Grade = "warning" // it works, but perhaps not as intended
	Problem Grade = "problem" // Weir does not do its work, or does harm
	Unknown Grade = "unknown" // it could not be read
)

// Finding is the result about one thing.
type Finding struct {
	About string `json:"about"`
	Grade Grade  `json:"grade"`
	Says  string `json:"says"`
	// Do is what to do about it; "" for nothing.
	Do string `json:"do,omitempty"`
}

// oldest and newest bound the minor versions of Kubernetes 1 that Weir is tested with. oldest is
// the chart's kubeVersion.
const oldest, newest = 30, 36

// Examine returns the findings that follow from the facts, in the order in which a person would
// check.
func Examine(f Facts) []Finding {
	out := []Finding{f.version(), f.collector(), f.namespaceController(), f.mode(), f.leader()}
	out = append(out, f.installed()...)
	out = append(out, f.rights()...)
	out = append(append(out, f.definitions()...), f.policies()...)
	return append(append(out, f.asked()...), f.admission()...)
}

func (f *Facts) version() Finding {
	v := Finding{About: "Kubernetes", Grade: OK, Says: f.Server}
	switch {
	case f.Major != 1 || f.Minor == 0:
		v.Grade, v.Says = Unknown, fmt.Sprintf("the API server says that it is %q: %s", f.Server, f.why("version"))
	case f.Minor < oldest:
		v.Grade, v.Says = Problem, fmt.Sprintf("%s is older than 1.%d", f.Server, oldest)
		v.Do = "upgrade the cluster: webhook configurations of Weir need what older API servers do not have"
	case f.Minor > newest:
		v.Grade, v.Says = Warning, fmt.Sprintf("%s is newer than 1.%d, the newest that this Weir was tested with", f.Server,
			newest)
	default:
		v.Says = strings.Join(append([]string{f.Server}, Lacks(f.Minor)...), "; ")
	}
	return v
}

// why returns why a fact was not read.
func (f *Facts) why(fact string) string {
	if e := f.Errors[fact]; e != "" {
		return e
	}
	return "it was not looked at"
}

// runs reports whether a kube-controller-manager runs a controller, by its flag --controllers.
// "-name" turns one off, and "*" stands for all that are on by default, as both of these are. As in
// kube-controller-manager, the first entry that names the controller counts.
func (m Manager) runs(controller string, aliases ...string) bool {
	all := false
	for entry := range strings.SplitSeq(m.Controllers, ",") {
		entry = strings.TrimSpace(entry)
		name, off := strings.CutPrefix(entry, "-")
		switch {
		case name == controller || slices.Contains(aliases, name):
			return !off
		case entry == "*":
			all = true
		}
	}
	return all
}

func (m Manager) collects() bool { return m.runs("garbage-collector-controller", "garbagecollector") }
func (m Manager) drains() bool   { return m.runs("namespace-controller", "namespace") }

// collector reports whether a garbage collector other than this Weir works. What happened to an
// object counts more than flags.
func (f *Facts) collector() Finding {
	c := Finding{About: "garbage collector"}
	off := "-garbage-collector-controller"
	if f.drains() {
		off += ",-namespace-controller"
	}
	off = "append " + off + " to kube-controller-manager's --controllers (* by default), or run Weir in companion mode"
	restart := "see the log of kube-controller-manager, or run Weir in replace mode"
	by, works, known := f.collects()
	if e := f.Errors["try"]; e != "" {
		by += "; --try failed: " + e
	}
	switch {
	case !known:
		c.Grade, c.Says = Unknown, "cannot tell whether a garbage collector works: "+by
		c.Do = "run it with --try, which creates a ConfigMap whose owner never existed, and waits for its end"
	case works && f.migrates() && (f.Tried == nil || f.waits()):
		c.Grade, c.Says = Warning, "one that is not Weir works ("+by+"); doctor cannot see whether it waits for the "+
			"migration Lease"
	case works && f.Mode == Replace:
		c.Grade, c.Says, c.Do = Problem, "a garbage collector works that is not Weir ("+by+"), and in replace mode Weir "+
			"does not work beside another", off
	case works:
		c.Grade, c.Says = OK, "the cluster's own works ("+by+")"
	case f.Mode != Replace:
		c.Grade, c.Says, c.Do = Problem, "none works ("+by+"), and in "+f.Mode+" mode Weir needs one: garbage stays", restart
	default:
		c.Grade, c.Says = OK, "none works but Weir ("+by+")"
	}
	return c
}

// collects returns whether a garbage collector other than Weir works, and how that is known, or why
// it is not.
func (f *Facts) collects() (by string, works, known bool) {
	const stood = 30 * time.Second
	switch {
	case f.Canary != nil && *f.Canary >= stood: // before Tried: Weir deletes that object, too
		return fmt.Sprintf("ConfigMap weir-collector-canary has stood for %s", f.Canary.Round(time.Second)), false, true
	case f.Tried != nil && f.Tried.Deleted:
		return fmt.Sprintf("an object whose owner never existed was deleted after %s",
			f.Tried.Took.Round(time.Millisecond)), true, true
	case f.Tried != nil:
		return fmt.Sprintf("an object whose owner never existed stood for %s", f.Tried.Took.Round(time.Second)), false, true
	}
	return f.byFlags("garbage collector", Manager.collects)
}

// byFlags returns whether some kube-controller-manager does a work, as far as its flags and its
// Lease tell.
func (f *Facts) byFlags(what string, does func(Manager) bool) (by string, works, known bool) {
	if f.Managers == nil {
		return "the pods of kube-system cannot be read: " + f.why("managers"), false, false
	}
	if len(*f.Managers) == 0 {
		if l := f.ManagerLease; l != nil && l.Holder != "" && !l.Expired {
			return fmt.Sprintf("kube-controller-manager runs (%s holds its Lease), outside of the cluster, and its flags "+
				"are not known", l.Holder), false, false
		}
		return "no kube-controller-manager is seen, neither as a pod of kube-system nor by its Lease", false, false
	}
	for _, m := range *f.Managers {
		if does(m) {
			return fmt.Sprintf("%s runs with --controllers=%s", m.Name, m.Controllers), true, true
		}
	}
	return fmt.Sprintf("%s runs with --controllers=%s, which has no %s", (*f.Managers)[0].Name,
		(*f.Managers)[0].Controllers, what), false, true
}

func (f *Facts) namespaceController() Finding {
	n := Finding{About: "namespace controller"}
	if f.Waiting != nil && len(*f.Waiting) > 0 { // it counts more than flags
		w := slices.MaxFunc(*f.Waiting, func(a, b Waiting) int { return cmp.Compare(a.For, b.For) })
		n.Grade, n.Says = Problem, fmt.Sprintf("none works: namespace %s has been Terminating for %s, and no namespace "+
			"controller has begun with it", w.Name, w.For.Round(time.Second))
		if others := len(*f.Waiting) - 1; others > 0 {
			n.Says += fmt.Sprintf(", nor with %d others", others)
		}
		if n.Do = "see the log of kube-controller-manager, or run Weir in replace mode"; f.drains() {
			n.Do = "see the log of the weir-controller that leads"
		}
		return n
	}
	switch by, works, known := f.byFlags("namespace controller", Manager.drains); {
	case !known:
		n.Grade, n.Says = Unknown, "cannot tell whether one works: "+by
	case works && f.drains() && f.migrates():
		n.Grade, n.Says = Warning, "one that is not Weir works ("+by+"); doctor cannot see whether it waits for the "+
			"migration Lease"
	case works && f.drains():
		n.Grade, n.Says, n.Do = Problem, "one works that is not Weir ("+by+"): both empty namespaces, and "+
			"the other one knows no waves",
			"turn it off (append -namespace-controller to kube-controller-manager's --controllers), or run Weir with "+
				"--drain-namespaces=false"
	case works:
		n.Grade, n.Says = OK, "the cluster's own works ("+by+")"
	case f.drains():
		n.Grade, n.Says = OK, "none works but Weir ("+by+")"
	case f.Mode == Replace:
		n.Grade, n.Do = Problem, "turn it on, or run Weir with --drain-namespaces"
		n.Says = "none works (" + by + "), and Weir runs with --drain-namespaces=false: namespaces stay Terminating"
	default:
		n.Grade, n.Do = Problem, "turn it on, or run Weir in replace mode"
		n.Says = "none works (" + by + "), and in " + f.Mode + " mode Weir needs one: namespaces stay Terminating"
	}
	return n
}

// drains reports whether Weir is the namespace controller.
func (f *Facts) drains() bool {
	return f.Mode == Replace && (f.Flags == nil || !f.Flags.LeavesNamespaces)
}

// mode reports which modes the cluster allows.
func (f *Facts) mode() Finding {
	m := Finding{About: "mode", Grade: OK}
	switch {
	case f.Managers == nil:
		m.Grade, m.Says = Unknown, "companion fits every cluster; cannot tell whether the flags of "+
			"kube-controller-manager can be changed: "+f.why("managers")
	case len(*f.Managers) == 0:
		m.Says = "companion: kube-controller-manager is no pod of this cluster, as in managed clusters, so its " +
			"controllers can hardly be turned off"
		if f.Mode == Replace {
			m.Grade = Warning
		}
	default:
		m.Says = "companion fits; replace is possible, because kube-controller-manager runs as a pod of this cluster and " +
			"its flags can be changed"
	}
	return m
}

func (f *Facts) leader() Finding {
	l := Finding{About: "controller"}
	switch {
	case f.Mode == Shadow:
		l.Grade, l.Says = OK, "in shadow mode Weir holds no Lease, and changes nothing: weir shadow says what it found"
	case f.WeirLease == nil:
		l.Grade, l.Says = Unknown, "cannot tell whether a controller of Weir leads: "+f.why("weirLease")
	case f.WeirLease.Holder == "":
		l.Grade, l.Says = Warning, "no controller of Weir holds the Lease weir-controller: Weir does not run here, or "+
			"not with --leader-elect"
	case f.WeirLease.Expired:
		l.Grade, l.Says = Problem, fmt.Sprintf("%s held the Lease weir-controller, and has not renewed it for %s",
			f.WeirLease.Holder, f.WeirLease.Renewed.Round(time.Second))
		l.Do = "see the logs of weir-controller; if Weir is not to come back, weir release removes its finalizer from " +
			"all objects"
	default:
		l.Grade, l.Says = OK, f.WeirLease.Holder+" leads"
	}
	return l
}

// rights returns one finding for each missing right, or one if all is well.
func (f *Facts) rights() (out []Finding) {
	unknown := map[string]int{}
	for _, r := range f.Rights {
		switch {
		case r.Error != "":
			unknown[r.Error]++
		case !r.Allowed:
			out = append(out, Finding{About: "permission", Grade: Problem,
				Says: f.whose() + " may not " + r.String() + ", which is needed for " + r.For,
				Do:   "grant it: the chart's ClusterRole weir-controller has it"})
		}
	}
	for _, why := range slices.Sorted(maps.Keys(unknown)) {
		out = append(out, Finding{About: "permission", Grade: Unknown,
			Says: fmt.Sprintf("%d permissions could not be looked up: %s", unknown[why], why)})
	}
	if len(out) == 0 && len(f.Rights) > 0 {
		out = append(out, Finding{About: "permission", Grade: OK,
			Says: fmt.Sprintf("%s has all %d that are looked at for %s mode", f.whose(), len(f.Rights), f.Mode)})
	}
	return out
}

// whose returns whose rights were looked up: those of an administrator say nothing about the
// controller's.
func (f *Facts) whose() string {
	if f.RightsOf == "" {
		return "your own user (there is no ServiceAccount weir-controller)"
	}
	return f.RightsOf
}

// String returns the right as kubectl auth can-i takes it.
func (n Need) String() string {
	s := n.Verb + " " + n.Resource
	if n.Group != "" && n.Resource != "*" {
		resource, sub, found := strings.Cut(n.Resource, "/")
		s = n.Verb + " " + resource + "." + n.Group
		if found {
			s += "/" + sub
		}
	} else if n.Resource == "*" {
		s = n.Verb + " *.*"
	}
	if n.Name != "" {
		s += " " + n.Name
	}
	if n.Namespace != "" {
		s += " -n " + n.Namespace
	}
	return s
}

// policyKinds are the kinds that the chart installs.
var policyKinds = []string{"deletionpolicies", "ownerreferencepolicies", "drainpolicies"}

func (f *Facts) definitions() []Finding {
	d := Finding{About: "policies", Grade: OK}
	if f.Definitions == nil {
		d.Grade, d.Says = Unknown, "cannot tell whether the kinds of policies are served: "+f.why("definitions")
		return []Finding{d}
	}
	var missing []string
	for _, k := range policyKinds {
		if !slices.Contains(*f.Definitions, k) {
			missing = append(missing, k)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	d.Grade, d.Do = Warning, "install the chart, or kubectl apply -f policies/crds"
	d.Says = "the API server does not serve " + strings.Join(missing, ", ") + ": policies can be files only"
	return []Finding{d}
}

// policies reports the conditions of policies that are False, and whether there are webhook
// configurations.
func (f *Facts) policies() (out []Finding) {
	var all []Policy
	if f.Policies == nil {
		out = append(out, Finding{About: "policies", Grade: Unknown, Says: "policies cannot be read: " + f.why("policies")})
	} else {
		all = *f.Policies
	}
	if f.Mode != Shadow { // in shadow mode their status is out of date
		for _, p := range all {
			out = append(out, p.findings()...)
		}
		if len(all) > 0 && f.Webhooks != nil && len(*f.Webhooks) == 0 {
			out = append(out, Finding{About: "webhook", Grade: Problem,
				Says: "there are policies, and no webhook configuration weir: the API server asks no webhook",
				Do:   "see that a controller leads; it writes them"})
		}
	}
	if f.Webhooks == nil {
		out = append(out, Finding{About: "webhook", Grade: Unknown,
			Says: "webhook configurations cannot be read: " + f.why("webhooks")})
	}
	if len(out) == 0 {
		out = append(out, Finding{About: "policies", Grade: OK, Says: f.inForce(len(all))})
	}
	return out
}

// findings returns the findings about one policy.
func (p *Policy) findings() (out []Finding) {
	for _, b := range p.Bad {
		grade := Warning
		if b.Breaks {
			grade = Problem
		}
		out = append(out, Finding{About: p.Name, Grade: grade, Says: b.Type + " is False (" + b.Reason + "): " + b.Message})
	}
	if p.Unknown != "" {
		out = append(out, Finding{About: p.Name, Grade: Unknown, Says: "cannot tell whether it is in force: " + p.Unknown,
			Do: "see that a controller of Weir leads, and its log: it writes into the status of policies whether they are " +
				"in force"})
	}
	return out
}

// inForce says how many policies there are, if there is no finding about any.
func (f *Facts) inForce(n int) string {
	switch {
	case n == 0:
		return "there is none"
	case f.Mode == Shadow:
		return fmt.Sprintf("%d, and none is enforced: in shadow mode Weir changes nothing, and no webhook is asked", n)
	}
	return fmt.Sprintf("%d, all in force", n)
}
