package insight

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Components are what tells whether the component behind a finalizer runs.
type Components struct {
	// Workloads are Deployments, StatefulSets and DaemonSets; Complete says that they are all that
	// there are.
	Workloads []unstructured.Unstructured
	Complete  bool
	// Leases are when leaders last said that they are there, by NAMESPACE/NAME. A zero time: there
	// is no such Lease.
	Leases map[string]time.Time
}

// LeaseOf is the Lease by which the component behind a finalizer says that it is there, as
// NAMESPACE/NAME; empty if it has none that is known.
func LeaseOf(finalizer string) string {
	f, _ := KnownFinalizer(finalizer)
	return f.Lease
}

// leaseStale is how old a Lease is whose holder is likely to be gone: its holder renews it every
// few seconds.
const leaseStale = time.Minute

// evidence says what is known of the component that put a finalizer on an object under a name as
// field manager, and is to take it off.
func (c *Components) evidence(finalizer, manager string, now time.Time) (out []string) {
	if c == nil {
		return nil
	}
	if lease := LeaseOf(finalizer); lease != "" {
		if renewed, read := c.Leases[lease]; read {
			out = append(out, leaseWords(lease, renewed, now))
		}
	}
	known, _ := KnownFinalizer(finalizer)
	name := cmp.Or(known.Workload, manager) // who wrote a well-known one need not be who takes it off
	if !telling(name) {
		return out
	}
	found := false
	for i := range c.Workloads {
		if u := &c.Workloads[i]; runs(u, name) {
			found = true
			out = append(out, workloadWords(u, name))
		}
	}
	if !found && c.Complete && len(out) == 0 {
		out = append(out, fmt.Sprintf("no Deployment, StatefulSet or DaemonSet in the cluster runs something that is named %q: the component may be gone", name))
	}
	return out
}

func leaseWords(lease string, renewed, now time.Time) string {
	if anywhere, ok := strings.CutPrefix(lease, "*/"); ok {
		lease = anywhere
	}
	if renewed.IsZero() {
		return fmt.Sprintf("the Lease %s, by which its component says that it is there, does not exist", lease)
	}
	age := max(0, now.Sub(renewed))
	words := fmt.Sprintf("the Lease %s, by which its component says that it is there, was renewed %s ago", lease, duration.HumanDuration(age))
	if age > leaseStale {
		words += ": it is likely not to run"
	}
	return words
}

// anybody are field managers that do not tell a component: tools of people, and names that many
// programs have.
var anybody = []string{"", "manager", "controller", "operator", "main", "unknown", "before-first-apply", "helm", "curl", "python-requests", "node-fetch", "Go-http-client", "OpenAPI-Generator"}

func telling(manager string) bool {
	return !slices.Contains(anybody, manager) && !strings.HasPrefix(manager, "kubectl")
}

// runs tells whether a workload runs something of a name. Clients are named after their program
// unless they choose a name.
func runs(u *unstructured.Unstructured, name string) bool {
	if u.GetName() == name {
		return true
	}
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	for _, one := range containers {
		c, _ := one.(map[string]any)
		image, _ := c["image"].(string)
		image, _, _ = strings.Cut(image, "@")
		base, _, _ := strings.Cut(path.Base(image), ":")
		command, _, _ := unstructured.NestedStringSlice(c, "command")
		if c["name"] == name || base == name || len(command) > 0 && path.Base(command[0]) == name {
			return true
		}
	}
	return false
}

func workloadWords(u *unstructured.Unstructured, manager string) string {
	wanted := int64(1)
	if n, ok, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); ok {
		wanted = n
	}
	ready, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
	if u.GetKind() == "DaemonSet" {
		wanted, _, _ = unstructured.NestedInt64(u.Object, "status", "desiredNumberScheduled")
		ready, _, _ = unstructured.NestedInt64(u.Object, "status", "numberReady")
	}
	words := fmt.Sprintf("the %s %s/%s, which runs something that is named %q, has %d of %d pods ready", u.GetKind(), u.GetNamespace(), u.GetName(), manager, ready, wanted)
	if ready == 0 {
		words += ": no component may be running that removes it"
	}
	return words
}
