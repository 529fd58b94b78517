package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// mustRefuse runs kubectl, which must fail and say each of these.
func (w *world) mustRefuse(says []string, args ...string) {
	w.Helper()
	out, err := w.kubectl(args...)
	if err == nil {
		w.Errorf("kubectl %s was not refused: %s", strings.Join(args, " "), out)
		return
	}
	for _, s := range says {
		if !strings.Contains(out, s) {
			w.Errorf("kubectl %s says\n%s\nwhich does not have\n%s", strings.Join(args, " "), out, s)
		}
	}
}

// awaitRefusal waits until weir refuses what kubectl asks for, which it only tries.
func (w *world) awaitRefusal(args ...string) {
	w.Helper()
	w.until("kubectl "+strings.Join(args, " ")+" is refused", func(context.Context) (bool, error) {
		out, err := w.kubectl(append(args, "--dry-run=server")...)
		return err != nil && strings.Contains(out, "denied the request"), nil
	})
}

// The refusal says what would have fallen, and what to do.
func TestDependentsProtectTheirOwner(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.make(`
			cm  owner
			sec alone
			sec one    owners=(owner)
			sec two    owners=(owner)
			cm  three  owners=(owner)
			sec deeper owners=(three)
			sec shared owners=(owner, alone)
			cm  free
		`)
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  protection: {maxDependents: 3, confirmation: Required}`)
		w.awaitRefusal("delete", "configmap", "owner")
		w.mustRefuse([]string{
			`configmaps "owner" in namespace "` + w.namespace + `" may not be deleted: 4 objects would fall with it, and 3 are accepted: 3 secrets (deeper, one, two); 1 configmaps (three)`,
			"To keep them: kubectl delete configmaps owner -n " + w.namespace + " --cascade=orphan",
			fmt.Sprintf("To let them fall: kubectl annotate configmaps owner -n %s --overwrite weir.dev/confirm-delete=%s", w.namespace, w.of("owner").uid),
		}, "delete", "configmap", "owner")
		w.alive("owner")
		w.mustKubectl("delete", "configmap", "free") // three of its kind have fewer
		w.mustKubectl("annotate", "configmaps", "owner", "--overwrite", "weir.dev/confirm-delete="+string(w.of("owner").uid))
		w.mustKubectl("delete", "configmap", "owner")
		w.awaitGone("owner", "one", "two", "three", "deeper")
		w.mustStay("shared", "alone")
	})
}

func TestWhoKeepsTheDependentsMayDelete(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.make(`
			cm  owner
			sec one owners=(owner)
		`)
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  protection: {maxDependents: 0}`)
		w.awaitRefusal("delete", "configmap", "owner")
		w.mustKubectl("delete", "configmap", "owner", "--cascade=orphan")
		w.awaitGone("owner")
		w.mustStay("one")
	})
}

func TestInstancesProtectTheirDefinition(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		crd := w.definition("Thing", apiextensionsv1.NamespaceScoped, "v1")
		w.define(crd)
		w.make(`
			thing one
			thing two
		`)
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions]}]
    conditions: [{name: ours, expression: "oldObject.metadata.name == '`+crd.Name+`'"}]
  protection: {maxDependents: 0, confirmation: Required}`)
		w.awaitRefusal("delete", "crd", crd.Name)
		w.mustRefuse([]string{`customresourcedefinitions.apiextensions.k8s.io "` + crd.Name + `" may not be deleted: 2 objects would fall with it, and none is accepted: 2 ` + crd.Name},
			"delete", "crd", crd.Name)
		w.mustStay("one", "two")
		w.mustKubectl("delete", "things."+crd.Spec.Group, "--all")
		w.awaitGone("one", "two")
		w.mustKubectl("delete", "crd", crd.Name)
	})
}

func TestContentProtectsItsNamespace(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.make(`
			cm  settings
			sec keys
		`)
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [namespaces]}]
    HERE
  protection: {maxDependents: 0, confirmation: Required}`)
		w.awaitRefusal("delete", "namespace", w.namespace)
		w.mustRefuse([]string{`namespaces "` + w.namespace + `" may not be deleted: 2 objects would fall with it, and none is accepted: 1 configmaps (settings); 1 secrets (keys)`},
			"delete", "namespace", w.namespace)
		w.mustKubectl("delete", "configmap/settings", "secret/keys")
		w.mustKubectl("delete", "namespace", w.namespace) // waits until it is gone
	})
}

func TestWarnAndAuditDoNotRefuse(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
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
			return strings.Contains(out, `Warning: configmaps "owner" in namespace "`+w.namespace+`" may not be deleted: 1 object would fall with it`), err
		})
		w.mustKubectl("delete", "configmap", "owner")
		w.awaitGone("owner", "one")
	})
}

// Who owns a protected object is deleted, and the collector goes on.
func TestCollectorsAreNeverRefused(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.make(`
			rc  top
			cm  middle owners=(top)
			sec leaf   owners=(middle)
		`)
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  protection: {maxDependents: 0, confirmation: Required}`)
		w.awaitRefusal("delete", "configmap", "middle")
		w.delete("top", background)
		w.awaitGone("top", "middle", "leaf")
	})
}
