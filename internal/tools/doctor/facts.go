package doctor

import (
	"strings"
	"time"
)

// Modes of Weir.
const (
	Shadow    = "shadow"
	Companion = "companion"
	Replace   = "replace"
)

// Facts are what was read of a cluster. A nil pointer was not read; Errors has the reason, by the
// name of the fact.
type Facts struct {
	Mode   string `json:"mode"` // the mode asked about
	Server string `json:"server"`
	// The version of the API server.
	Major int `json:"major"`
	Minor int `json:"minor"`
	// Managers are the kube-controller-managers that are pods of kube-system; none if the control
	// plane runs elsewhere.
	Managers *[]Manager `json:"managers,omitempty"`
	// ManagerLease is the leader's Lease of kube-controller-manager.
	ManagerLease *Lease `json:"managerLease,omitempty"`
	// Flags are those of the installed controller; nil if there is none. MigrationLease is the
	// Lease that they name; nil if none.
	Flags          *Flags `json:"flags,omitempty"`
	MigrationLease *Lease `json:"migrationLease,omitempty"`
	// WeirLease is the leader's Lease of Weir's controllers.
	WeirLease *Lease `json:"weirLease,omitempty"`
	// Canary is the age of Weir's canary, which any other garbage collector would have deleted; 0
	// if there is none.
	Canary *time.Duration `json:"canary,omitempty"`
	// Tried is what became of an object whose owner never existed; nil if it was not tried.
	Tried *Tried `json:"tried,omitempty"`
	// Waiting are the namespaces that are being deleted, and that no namespace controller has begun
	// to empty in time.
	Waiting *[]Waiting `json:"waiting,omitempty"`
	// User is the user of Weir's controller.
	User string `json:"user"`
	// RightsOf says whose rights these are; "" for the user's own, if there is no ServiceAccount of
	// the controller.
	RightsOf string    `json:"rightsOf,omitempty"`
	Rights   []Right   `json:"rights"`
	Webhooks *[]string `json:"webhooks,omitempty"` // names of Weir's webhook configurations
	// Asked is whether the API server asks the webhook; nil if there is none, or it was not tried.
	Asked    *Asked    `json:"asked,omitempty"`
	Policies *[]Policy `json:"policies,omitempty"`
	// Admission are the admission policies and webhooks of others that may refuse Weir's requests.
	Admission *[]Admission `json:"admission,omitempty"`
	// Definitions are the served kinds of policies.
	Definitions *[]string         `json:"definitions,omitempty"`
	Errors      map[string]string `json:"errors,omitempty"`
}

// Manager is a kube-controller-manager.
type Manager struct {
	Name string `json:"name"`
	// Controllers is its flag --controllers, "*" by default.
	Controllers string `json:"controllers"`
	// User is the user of its garbage collector.
	User string `json:"user"`
}

// Flags are the flags of Weir's controller that concern other processes.
type Flags struct {
	MigrationLease string   `json:"migrationLease,omitempty"` // NAMESPACE/NAME, under which kube-controller-manager collects, too
	BrakeUsers     []string `json:"brakeUsers,omitempty"`     // their deletes are held past the limits
	// LeavesNamespaces: Weir leaves namespaces to the cluster's own namespace controller
	// (--drain-namespaces=false).
	LeavesNamespaces bool `json:"leavesNamespaces,omitempty"`
}

// Lease is who holds a Lease, and how long ago it was renewed.
type Lease struct {
	Holder  string        `json:"holder"` // empty if no process does
	Renewed time.Duration `json:"renewed"`
	Expired bool          `json:"expired"`
}

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

// Policy is a policy and its conditions that are False.
type Policy struct {
	Name string `json:"name"` // with its kind
	Bad  []Bad  `json:"bad,omitempty"`
	// Unknown is why it is not known whether the policy is in force; "" if that is known.
	Unknown string `json:"unknown,omitempty"`
}

// Bad is a condition of a policy that is False.
type Bad struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Breaks reports that the policy does not do what it says; otherwise the condition is a
	// warning.
	Breaks bool `json:"breaks"`
}

// Right is a right that Weir needs, and whether the user has it.
type Right struct {
	Need
	Allowed bool   `json:"allowed"`
	Error   string `json:"error,omitempty"` // why it is not known
}

// Need is a right that Weir needs, and what for. docs/security.md lists them all, and those of the
// webhook.
type Need struct {
	Verb      string `json:"verb"`
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"` // with its subresource
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	For       string `json:"for"`
}

// LeaseNeeds returns the rights of a controller that waits for the migration Lease NAMESPACE/NAME.
func LeaseNeeds(lease string) []Need {
	namespace, name, _ := strings.Cut(lease, "/")
	need := Need{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: namespace, Name: name,
		For: "the migration Lease"}
	update, create := need, need
	update.Verb, create.Verb, create.Name = "update", "create", ""
	return []Need{need, update, create}
}

// Needs returns the rights of a controller in a mode, with its Lease in the namespace home. With
// drains, it is the namespace controller in replace mode.
func Needs(mode, home string, drains bool) []Need {
	const (
		webhookConfigurations = "admissionregistration.k8s.io"
		leases                = "coordination.k8s.io"
	)
	needs := []Need{
		{Verb: "get", Group: "*", Resource: "*", For: "lookups of owners"},
		{Verb: "list", Group: "*", Resource: "*", For: "the ownership graph; kinds that may not be listed are not collected"},
		{Verb: "watch", Group: "*", Resource: "*", For: "the ownership graph"},
		{Verb: "patch", Group: "*", Resource: "*", For: "finalizers, and releasing dependents"},
		{Verb: "delete", Group: "*", Resource: "*", For: "deleting dependents"},
		{Verb: "create", Resource: "events", For: "saying on objects what stands in the way"},
		{Verb: "get", Group: leases, Resource: "leases", Namespace: home, Name: "weir-controller",
			For: "one replica leading"},
		{Verb: "update", Group: leases, Resource: "leases", Namespace: home, Name: "weir-controller",
			For: "one replica leading"},
		{Verb: "create", Group: leases, Resource: "leases", Namespace: home, For: "one replica leading"},
		{Verb: "get", Resource: "configmaps", Namespace: home, Name: "weir-collector-canary",
			For: "finding out whether another garbage collector works"},
		{Verb: "create", Resource: "configmaps", Namespace: home, For: "finding out whether another garbage collector works"},
		{Verb: "delete", Resource: "configmaps", Namespace: home, Name: "weir-collector-canary",
			For: "finding out whether another garbage collector works"},
		{Verb: "update", Group: "weir.dev", Resource: "deletionpolicies/status", For: "the status of policies"},
		{Verb: "create", Group: webhookConfigurations, Resource: "validatingwebhookconfigurations",
			For: "having the API server ask the webhook"},
		{Verb: "update", Group: webhookConfigurations, Resource: "validatingwebhookconfigurations", Name: "weir",
			For: "having the API server ask the webhook"},
		{Verb: "update", Group: webhookConfigurations, Resource: "mutatingwebhookconfigurations", Name: "weir",
			For: "having the API server ask the webhook"},
		{Verb: "list", Group: "weir.dev", Resource: "heldcollections",
			For: "knowing what was held before a restart, and what a person has decided"},
		{Verb: "create", Group: "weir.dev", Resource: "heldcollections", For: "telling what is held"},
		{Verb: "delete", Group: "weir.dev", Resource: "heldcollections", For: "telling that nothing is held any more"},
		{Verb: "patch", Group: "weir.dev", Resource: "heldcollections/status", For: "telling what is held"},
	}
	switch mode {
	case Shadow:
		return needs[:3]
	case Replace:
		needs = append(needs,
			Need{Verb: "deletecollection", Group: "*", Resource: "*", For: "kinds that can only be deleted as a whole"},
			Need{Verb: "get", Resource: "configmaps", Namespace: home, Name: "weir-deleted-owners",
				For: "going on after a restart with what was asked for before"},
			Need{Verb: "patch", Resource: "configmaps", Namespace: home, Name: "weir-deleted-owners",
				For: "going on after a restart with what was asked for before"})
		if !drains {
			return needs
		}
		needs = append(needs,
			Need{Verb: "update", Resource: "namespaces/finalize", For: "the last step of a namespace"},
			Need{Verb: "list", Group: leases, Resource: "leases", Namespace: "kube-system",
				For: "knowing how many API servers there are"},
		)
	}
	return append(needs, Need{Verb: "patch", Resource: "namespaces/status", For: "saying what a namespace waits for"})
}
