// Package doctor says whether Weir, in a mode, fits the collectors of a cluster. It is pure: Facts,
// which the caller has read, go in, and Findings come out. What was not read is reported as unknown.
package doctor

import (
	"fmt"
	"strings"
	"time"
)

// The modes of weir controller.
const (
	Shadow    = "shadow"
	Companion = "companion"
	Replace   = "replace"
)

// Facts are what was read of a cluster. What could not be read is empty, and Errors says why.
type Facts struct {
	Mode string // the mode asked about
	// Managers are the kube-controller-managers that are pods of kube-system; none if the control
	// plane runs elsewhere.
	Managers []Manager
	// LeavesNamespaces: the installed controller has --drain-namespaces=false.
	LeavesNamespaces bool
	// Canary is the age of Weir's canary, which any other garbage collector would have deleted; 0
	// if there is none.
	Canary time.Duration
	// Asked is whether the API server asks the webhook: True, False or Unknown; AskedSays is why.
	Asked, AskedSays string
	// User is Weir's controller.
	User string
	// Admission are the admission policies and webhooks of others that may refuse Weir's requests.
	Admission []Admission
	// Errors are why facts could not be read: flags of the Deployment, managers, canary, admission.
	Errors map[string]string
}

// Manager is a kube-controller-manager.
type Manager struct {
	Name        string
	Controllers string // its flag --controllers, "*" by default
}

// runs reports whether a kube-controller-manager runs a controller, by its flag --controllers.
// "-name" turns one off, and "*" stands for all that are on by default, as both of these are. As in
// kube-controller-manager, the first entry that names the controller counts.
func (m Manager) runs(controller, alias string) bool {
	all := false
	for entry := range strings.SplitSeq(m.Controllers, ",") {
		entry = strings.TrimSpace(entry)
		name, off := strings.CutPrefix(entry, "-")
		switch {
		case name == controller || name == alias:
			return !off
		case entry == "*":
			all = true
		}
	}
	return all
}

func (m Manager) collects() bool { return m.runs("garbage-collector-controller", "garbagecollector") }
func (m Manager) drains() bool   { return m.runs("namespace-controller", "namespace") }

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
	About string
	Grade Grade
	Says  string
	Do    string // what to do about it; "" for nothing
}

// Examine returns the findings that follow from the facts, in the order in which a person would
// check.
func Examine(f Facts) []Finding {
	out := append([]Finding{f.mode(), f.collector(), f.namespaceController()}, f.webhook()...)
	return append(out, f.admission()...)
}

func (f *Facts) mode() Finding {
	if why := f.Errors["flags"]; why != "" {
		return Finding{About: "mode", Grade: Unknown,
			Says: "cannot tell which mode is installed, and " + f.Mode + " is assumed: " + why}
	}
	return Finding{About: "mode", Grade: OK, Says: f.Mode}
}

// drains reports whether Weir is the namespace controller.
func (f *Facts) drains() bool { return f.Mode == Replace && !f.LeavesNamespaces }

// stood is how old a canary has to be: the built-in collector may be busy for seconds.
const stood = 30 * time.Second

// collector reports whether a garbage collector other than this Weir works. What happened to an
// object counts more than flags.
func (f *Facts) collector() Finding {
	by, works, known := f.byFlags("garbage collector", Manager.collects)
	if f.Canary >= stood {
		by, works, known = fmt.Sprintf("ConfigMap weir-collector-canary has stood for %s", f.Canary.Round(time.Second)),
			false, true
	}
	c := Finding{About: "garbage collector"}
	switch {
	case !known:
		c.Grade, c.Says = Unknown, "cannot tell whether a garbage collector works: "+by
	case works && f.Mode == Replace:
		off := "-garbage-collector-controller"
		if f.drains() {
			off += ",-namespace-controller"
		}
		c.Grade, c.Says = Problem, "a garbage collector works that is not Weir ("+by+"), and in replace mode Weir "+
			"does not work beside another"
		c.Do = "append " + off + " to kube-controller-manager's --controllers (* by default), or run Weir in companion mode"
	case works:
		c.Grade, c.Says = OK, "the cluster's own works ("+by+")"
	case f.Mode != Replace:
		c.Grade, c.Says = Problem, "none works ("+by+"), and in "+f.Mode+" mode Weir needs one: garbage stays"
		c.Do = "see the log of kube-controller-manager, or run Weir in replace mode"
	default:
		c.Grade, c.Says = OK, "none works but Weir ("+by+")"
	}
	return c
}

// byFlags returns whether some kube-controller-manager does a work, as far as its flags tell.
func (f *Facts) byFlags(what string, does func(Manager) bool) (by string, works, known bool) {
	if why := f.Errors["managers"]; why != "" {
		return "the pods of kube-system cannot be read: " + why, false, false
	}
	if len(f.Managers) == 0 {
		return "kube-controller-manager is no pod of kube-system, as in managed clusters, and its flags are not known",
			false, false
	}
	for _, m := range f.Managers {
		if does(m) {
			return fmt.Sprintf("%s runs with --controllers=%s", m.Name, m.Controllers), true, true
		}
	}
	return fmt.Sprintf("%s runs with --controllers=%s, which has no %s", f.Managers[0].Name, f.Managers[0].Controllers,
		what), false, true
}

func (f *Facts) namespaceController() Finding {
	n := Finding{About: "namespace controller"}
	switch by, works, known := f.byFlags("namespace controller", Manager.drains); {
	case !known:
		n.Grade, n.Says = Unknown, "cannot tell whether one works: "+by
	case works && f.drains():
		n.Grade, n.Says = Problem, "one works that is not Weir ("+by+"): both empty namespaces, and the other one knows "+
			"no waves"
		n.Do = "turn it off (append -namespace-controller to kube-controller-manager's --controllers), or run Weir with " +
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

// webhook reports whether the API server asks the webhook. In shadow mode there is none.
func (f *Facts) webhook() []Finding {
	w := Finding{About: "webhook", Grade: Unknown, Says: f.AskedSays}
	switch {
	case f.Mode == Shadow:
		return nil
	case f.Asked == "True":
		w.Grade = OK
	case f.Asked == "False":
		w.Grade = Problem
		w.Do = "see the logs of weir-webhook, and the condition Enforced of policies: until then their failurePolicy decides"
	}
	return []Finding{w}
}
