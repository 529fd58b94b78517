package insight

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
)

// PodNamespaces returns the namespaces in which pods are deleted, sorted.
func (p *Plan) PodNamespaces() (out []string) {
	for _, i := range p.Items {
		if i.stops() && !slices.Contains(out, i.Namespace) {
			out = append(out, i.Namespace)
		}
	}
	slices.Sort(out)
	return out
}

// stops reports whether it is a pod whose deletion begins.
func (i *Item) stops() bool {
	return i.Kind == pods.String() && i.Outcome == Deleted && !i.Deleting
}

// Grace sets the grace periods of pods from the whole objects.
func (p *Plan) Grace(all []unstructured.Unstructured) {
	of := map[types.UID]int64{}
	for i := range all {
		seconds, ok, err := unstructured.NestedInt64(all[i].Object, "spec", "terminationGracePeriodSeconds")
		if !ok || err != nil {
			continue
		}
		node, _, _ := unstructured.NestedString(all[i].Object, "spec", "nodeName")
		phase, _, _ := unstructured.NestedString(all[i].Object, "status", "phase")
		if node == "" || phase == "Succeeded" || phase == "Failed" {
			seconds = 0 // no container runs: the API server deletes it at once
		}
		of[all[i].GetUID()] = seconds
	}
	for _, r := range p.Roots {
		if seconds, ok := of[r.UID]; ok && seconds > 0 && p.GracePeriodSeconds != nil {
			of[r.UID] = *p.GracePeriodSeconds
		}
	}
	for _, i := range p.Items {
		if seconds, ok := of[i.UID]; ok && i.stops() {
			i.GracePeriodSeconds = &seconds
		}
	}
}

// stopping says how long a pod may take to stop; empty if that is unknown, or zero.
func (i *Item) stopping() string {
	if i.GracePeriodSeconds == nil || *i.GracePeriodSeconds == 0 {
		return ""
	}
	return fmt.Sprintf("up to %s to stop", duration.HumanDuration(time.Duration(*i.GracePeriodSeconds)*time.Second))
}
