package e2e

import (
	"fmt"
	"strings"
)

// keeping is a policy of one resource that keeps the ConfigMaps that its objects own.
func keeping(resource, propagation string) string {
	group, name, grouped := strings.Cut(resource, "/")
	if !grouped {
		group, name = "", resource
	}
	return `
  match:
    resources: [{apiGroups: ["` + group + `"], resources: [` + name + `]}]
    HERE
  propagation:` + propagation + `
    dependents: [{apiGroups: [""], resources: [configmaps], action: Orphan}]`
}

// keptBy makes ConfigMaps that an object owns: enough of them that a collector which begins at once
// gets to some before all are released.
func (w *fixture) keptBy(owner string) (names []string) {
	w.Helper()
	for i := range 60 {
		names = append(names, fmt.Sprintf("kept-%d", i))
		w.make(fmt.Sprintf("cm %s owners=(%s!block)", names[i], owner))
	}
	return names
}

// mustHaveNoOwner makes sure that objects stay, and lose their owners.
func (w *fixture) mustHaveNoOwner(names []string) {
	w.Helper()
	w.mustStay(names...)
	for _, name := range names {
		w.awaitOwners(name, "")
	}
}
