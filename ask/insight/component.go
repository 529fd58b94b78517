package insight

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Components is what tells whether the component behind a finalizer runs.
type Components struct {
	// Workloads are Deployments, StatefulSets and DaemonSets; Complete reports whether they are all of
	// the cluster's.
	Workloads []unstructured.Unstructured
	Complete  bool
}

// evidence says what is known of the component that has to remove a finalizer. manager is the field
// manager that wrote the finalizer.
func (c *Components) evidence(finalizer, manager string) (out []string) {
	if c == nil {
		return nil
	}
	known, _ := KnownFinalizer(finalizer)
	name := cmp.Or(known.Workload, manager) // the writer of a known finalizer need not be who removes it
	if !telling(name) {
		return nil
	}
	for i := range c.Workloads {
		if u := &c.Workloads[i]; runs(u, name) {
			out = append(out, workloadWords(u, name))
		}
	}
	if c.Complete && len(out) == 0 {
		out = append(out, fmt.Sprintf("no Deployment, StatefulSet or DaemonSet in the cluster runs something that is "+
			"named %q: the component may be gone", name))
	}
	return out
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
