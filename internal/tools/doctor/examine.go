package doctor

import (
	"fmt"
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
	return append(append(out, f.webhook()...), f.admission()...)
}

func (f *Facts) version() Finding {
	v := Finding{About: "Kubernetes", Grade: OK, Says: f.Server}
	switch {
	case f.Major != 1 || f.Minor == 0:
		v.Grade, v.Says = Unknown, fmt.Sprintf("the API server says that it is %q", f.Server)
	case f.Minor < oldest:
		v.Grade, v.Says = Problem, fmt.Sprintf("%s is older than 1.%d", f.Server, oldest)
		v.Do = "upgrade the cluster: webhook configurations of Weir need what older API servers do not have"
	case f.Minor > newest:
		v.Grade = Warning
		v.Says = fmt.Sprintf("%s is newer than 1.%d, the newest that this Weir was tested with", f.Server, newest)
	}
	return v
}

// mode reports which modes the cluster allows.
func (f *Facts) mode() Finding {
	m := Finding{About: "mode", Grade: OK}
	switch why := f.unread("managers"); {
	case f.unread("flags") != "":
		m.Grade, m.Says = Unknown, "cannot tell which mode is installed, and "+f.Mode+" is assumed: "+f.unread("flags")
	case why != "":
		m.Grade, m.Says = Unknown, "companion fits every cluster; cannot tell whether the flags of "+
			"kube-controller-manager can be changed: "+why
	case len(f.Managers) == 0:
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
	switch why := f.unread("weirLease"); {
	case f.Mode == Shadow:
		l.Grade = OK
		l.Says = "in shadow mode Weir holds no Lease, and changes nothing: kubectl weir shadow says what it found"
	case why != "":
		l.Grade, l.Says = Unknown, "cannot tell whether a controller of Weir leads: "+why
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

// webhook reports whether the API server asks the webhook, and webhook configurations that no
// controller keeps.
func (f *Facts) webhook() []Finding {
	w := Finding{About: "webhook"}
	names := strings.Join(f.Webhooks, " and ")
	switch why := f.unread("webhooks"); {
	case why != "":
		w.Grade, w.Says = Unknown, "webhook configurations cannot be read: "+why
	case names == "" && f.Mode != Shadow && f.WeirLease.held():
		w.Grade, w.Says = Warning, "there is no webhook configuration weir: no webhook enforces policies"
		w.Do = "give the controller --webhook-service or --webhook-url, as the chart does, and see its log"
	case names == "":
		return nil
	case f.Mode != Shadow && f.Asked != nil && f.Asked.Status == "True":
		w.Grade, w.Says = OK, f.Asked.Says
	case f.Mode == Shadow || f.unread("weirLease") == "" && f.WeirLease.Holder == "":
		w.Grade, w.Says = Warning, "the configurations "+names+" are there, and no controller of Weir keeps them: they are "+
			"of another installation (--namespace), or left over from one"
		w.Do = "if Weir is not to come back, weir release deletes them, and removes its finalizer from all objects"
	case f.Asked == nil:
		return nil
	case f.Asked.Status == "False":
		w.Grade, w.Says = Problem, f.Asked.Says
		w.Do = "see the logs of weir-webhook, and the condition Enforced of policies: until then their failurePolicy decides"
	default:
		w.Grade, w.Says = Unknown, f.Asked.Says
	}
	return []Finding{w}
}
