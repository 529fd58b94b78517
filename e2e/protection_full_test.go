//go:build full

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// Who only tries a delete, or may not do it, is told what would also be deleted.
func TestTriedDeleteTellsWhatWouldAlsoBeDeleted(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.make(`
			cm  owner
			sec one    owners=(owner)
			cm  two    owners=(owner)
			sec deeper owners=(two)
			cm  alone
		`)
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  protection: {maxDependents: 100}
  propagation: {default: Background, allowed: [Background]}`)
		says := `Warning: if configmaps "owner" in namespace "` + w.namespace + `" is deleted, 3 objects are also deleted: 2 secrets, 1 configmaps`
		w.until("a delete that is tried says what would also be deleted", func(context.Context) (bool, error) {
			out, err := w.kubectlOnceKnown("delete", "configmap", "owner", "--dry-run=server")
			return strings.Contains(out, says), err
		})
		// The warning is left out where it would hold up the answer, as on a machine with too much to do.
		w.until("a delete that is refused says so, too", func(context.Context) (bool, error) {
			out, err := w.kubectlOnceKnown("delete", "configmap", "owner", "--cascade=foreground")
			if err == nil {
				return false, fmt.Errorf("it is let through: %s", out)
			}
			return strings.Contains(out, says), nil
		})
		if out, err := w.kubectlOnceKnown("delete", "configmap", "alone", "--dry-run=server"); err != nil || strings.Contains(out, "Warning") {
			t.Errorf("nothing else would be deleted, and kubectl says (%v)\n%s", err, out)
		}
		if out, err := w.kubectlOnceKnown("delete", "configmap", "owner"); err != nil || strings.Contains(out, "also deleted") {
			t.Errorf("it is deleted, and kubectl says (%v)\n%s", err, out)
		}
		w.awaitGone("owner", "one", "two", "deeper")
	})
}

func TestWarnAndAuditDoNotRefuse(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.make(`
			cm  owner
			sec one owners=(owner)
		`)
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  protection: {maxDependents: 0}
  validationActions: [Warn, Audit]`)
		w.until("kubectl is warned", func(context.Context) (bool, error) {
			out, err := w.kubectl("delete", "configmap", "owner", "--dry-run=server")
			return strings.Contains(out, `Warning: configmaps "owner" in namespace "`+w.namespace+`" may not be deleted: 1 object would also be deleted`), err
		})
		w.mustKubectl("delete", "configmap", "owner")
		w.awaitGone("owner", "one")
	})
}
