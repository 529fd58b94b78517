package plane

import "io"

// Controllers is a value of kube-controller-manager's --controllers.
type Controllers string

const (
	// None runs no kube-controller-manager.
	None Controllers = ""
	// All is a cluster as people know it.
	All Controllers = "*"
	// WithoutCollectors is the cluster that Weir's replace mode is for.
	WithoutCollectors Controllers = "*,-garbage-collector-controller,-namespace-controller"
	// CollectorOnly is what Weir's collecting is compared with.
	CollectorOnly Controllers = "garbage-collector-controller"
	// NamespaceOnly is what its draining is compared with.
	NamespaceOnly Controllers = "namespace-controller"
	// Collectors are both.
	Collectors Controllers = "garbage-collector-controller,namespace-controller"
)

// Options say what runs besides etcd and kube-apiserver. The zero value is an
// API server alone: nothing collects, no namespace ever empties.
type Options struct {
	Controllers Controllers
	Scheduler   bool
	// Kwok adds a node that runs nothing and makes its pods Running.
	Kwok bool

	// Address is where the API server listens, and what it tells the pods of
	// a real node; it must be an address of this machine. Empty means
	// loopback, and an API server that no pod can reach.
	Address string

	// Flags come after the plane's own, so that they win.
	APIServerFlags         []string
	ControllerManagerFlags []string
	// APIServerEnv is added to the API server's environment, as NAME=VALUE.
	APIServerEnv []string

	// Audit writes one line per request to Plane.AuditLog.
	Audit bool
	// Out receives the progress of builds; nil discards it.
	Out io.Writer
	// Dir is where the plane keeps its files, and keeps them after Stop.
	// Empty means a temporary directory that Stop removes.
	Dir string
}

func (o Options) address() string {
	if o.Address == "" {
		return "127.0.0.1"
	}
	return o.Address
}

// endpoints says who writes the endpoint of the Service "kubernetes": one on
// loopback is not valid, so no client may write it.
func (o Options) endpoints() string {
	if o.Address == "" {
		return "none"
	}
	return "lease"
}

func (o Options) parts() []Part {
	parts := []Part{APIServer, Etcd}
	if o.Controllers != None {
		parts = append(parts, ControllerManager)
	}
	if o.Scheduler {
		parts = append(parts, Scheduler)
	}
	if o.Kwok {
		parts = append(parts, Kwok)
	}
	return parts
}
