package doctor

import (
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
	Mode string `json:"mode"` // the mode asked about
	// The version of the API server.
	Server string `json:"server"`
	Major  int    `json:"major"`
	Minor  int    `json:"minor"`
	// Managers are the kube-controller-managers that are pods of kube-system; none if the control
	// plane runs elsewhere.
	Managers []Manager `json:"managers"`
	// ManagerLease is the leader's Lease of kube-controller-manager, and WeirLease that of Weir.
	ManagerLease Lease `json:"managerLease"`
	WeirLease    Lease `json:"weirLease"`
	// LeavesNamespaces: the installed controller has --drain-namespaces=false.
	LeavesNamespaces bool `json:"leavesNamespaces,omitempty"`
	// Canary is the age of Weir's canary, which any other garbage collector would have deleted; 0
	// if there is none.
	Canary time.Duration `json:"canary"`
	// Tried is what became of an object whose owner never existed; nil if it was not tried.
	Tried *Tried `json:"tried,omitempty"`
	// Waiting are the namespaces that are being deleted, and that no namespace controller has begun
	// to empty in time.
	Waiting []Waiting `json:"waiting"`
	// User is the user of Weir's controller.
	User     string   `json:"user"`
	Webhooks []string `json:"webhooks"` // names of Weir's webhook configurations
	// Asked is whether the API server asks the webhook; nil if there is none.
	Asked *Asked `json:"asked,omitempty"`
	// Admission are the admission policies and webhooks of others that may refuse Weir's requests.
	Admission []Admission `json:"admission"`
	// Errors are why facts could not be read, by their names here.
	Errors map[string]string `json:"errors,omitempty"`
}

// Manager is a kube-controller-manager.
type Manager struct {
	Name string `json:"name"`
	// Controllers is its flag --controllers, "*" by default.
	Controllers string `json:"controllers"`
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

// Lease is who holds a Lease, and how long ago it was renewed.
type Lease struct {
	Holder  string        `json:"holder"` // empty if no process does
	Renewed time.Duration `json:"renewed"`
	Expired bool          `json:"expired"`
}

func (l Lease) held() bool { return l.Holder != "" && !l.Expired }

// Tried is an object whose owner never existed: whether a garbage collector deleted it, and how
// long that took.
type Tried struct {
	Deleted bool          `json:"deleted"`
	Took    time.Duration `json:"took"`
}

// Waiting is a namespace that is being deleted, and for how long.
type Waiting struct {
	Name string        `json:"name"`
	For  time.Duration `json:"for"`
}

// Asked is the result of a request that only the webhook can answer.
type Asked struct {
	Status string `json:"status"` // True, False or Unknown
	Says   string `json:"says"`
}

// unread returns why a fact could not be read; "" if it was read.
func (f *Facts) unread(fact string) string { return f.Errors[fact] }

// drains reports whether Weir is the namespace controller.
func (f *Facts) drains() bool { return f.Mode == Replace && !f.LeavesNamespaces }
