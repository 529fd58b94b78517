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

// Components is what tells whether the component behind a finalizer runs.
type Components struct {
	// Workloads are Deployments, StatefulSets and DaemonSets; Complete reports whether they are all of
	// the cluster's.
	Workloads []unstructured.Unstructured
	Complete  bool
	// Leases maps NAMESPACE/NAME of Leases of leaders to their renew times. A zero time means that
	// there is no such Lease.
	Leases map[string]time.Time
}

// LeaseOf returns the Lease that the component behind a finalizer renews, as NAMESPACE/NAME; empty
// if none is known.
func LeaseOf(finalizer string) string {
	f, _ := KnownFinalizer(finalizer)
	return f.Lease
}

// leaseStale is the age from which a Lease is likely to have no holder: holders renew theirs every
// few seconds.
const leaseStale = time.Minute

// evidence says what is known of the component that has to remove a finalizer. manager is the field
// manager that wrote the finalizer.
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
	name := cmp.Or(known.Workload, manager) // the writer of a known finalizer need not be who removes it
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
		out = append(out, fmt.Sprintf("no Deployment, StatefulSet or DaemonSet in the cluster runs something that is "+
			"named %q: the component may be gone", name))
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
	words := fmt.Sprintf("the Lease %s, by which its component says that it is there, was renewed %s ago",
		lease, duration.HumanDuration(age))
	if age > leaseStale {
		words += ": it is likely not to run"
	}
	return words
}

// anybody are field managers that name no component: tools of users, and names that many programs
// have.
var anybody = []string{"", "manager", "controller", "operator", "main", "unknown", "before-first-apply", "helm", "curl",
	"python-requests", "node-fetch", "Go-http-client", "OpenAPI-Generator"}

func telling(manager string) bool {
	return !slices.Contains(anybody, manager) && !strings.HasPrefix(manager, "kubectl")
}

// runs reports whether a workload, or one of its containers, images or commands, has a name.
// Clients have the name of their program as field manager unless they set one.
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
	words := fmt.Sprintf("the %s %s/%s, which runs something that is named %q, has %d of %d pods ready",
		u.GetKind(), u.GetNamespace(), u.GetName(), manager, ready, wanted)
	if ready == 0 {
		words += ": no component may be running that removes it"
	}
	return words
}
