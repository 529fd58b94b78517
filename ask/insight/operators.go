package insight

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// workloads are the kinds that run the components which remove finalizers.
var workloads = []string{"deployments.apps", "statefulsets.apps", "daemonsets.apps"}

// removers sets, if workloads are deleted, the names of the components that have to remove
// finalizers.
func (w *World) removers(items []*Item) {
	if !slices.ContainsFunc(items, (*Item).isWorkload) {
		return
	}
	for _, i := range items {
		if i.Outcome != Deleted {
			continue
		}
		for _, f := range i.Finalizers {
			known, _ := KnownFinalizer(f)
			name := known.Workload
			if by, ok := writer(w.Meta(i.UID), f); ok && name == "" {
				name = by.Manager
			}
			if telling(name) && !slices.Contains(i.removers, name) {
				i.removers = append(i.removers, name)
			}
		}
	}
}

func (i *Item) isWorkload() bool {
	return i.Outcome == Deleted && slices.Contains(workloads, i.Kind)
}

// WorkloadNamespaces returns the namespaces in which workloads are deleted, sorted, if one of them
// may be what removes a finalizer.
func (p *Plan) WorkloadNamespaces() (out []string) {
	if !slices.ContainsFunc(p.Items, func(i *Item) bool { return len(i.removers) > 0 }) {
		return nil
	}
	for _, i := range p.Items {
		if i.isWorkload() && !slices.Contains(out, i.Namespace) {
			out = append(out, i.Namespace)
		}
	}
	slices.Sort(out)
	return out
}

// Workloads sets Deserted from the whole workloads: what waits for one that is deleted before it
// may wait for ever.
func (p *Plan) Workloads(all []unstructured.Unstructured) {
	goes := map[types.UID]*Item{}
	for _, i := range p.Items {
		if i.isWorkload() {
			goes[i.UID] = i
		}
	}
	running := map[string]*Item{} // by the name of a component: its workload that is deleted first
	for _, i := range p.Items {
		for _, name := range i.removers {
			first, met := running[name]
			if !met {
				for n := range all {
					if w := goes[all[n].GetUID()]; w != nil && runs(&all[n], name) &&
						(first == nil || w.Stage < first.Stage) {
						first = w
					}
				}
				running[name] = first
			}
			if first != nil && first.Stage < i.Stage {
				i.Deserted = fmt.Sprintf("%s, which runs something that is named %q, is deleted before "+
					"that: nothing may be left that removes it", first.Short(i.Namespace), name)
			}
		}
	}
}
