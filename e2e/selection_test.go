package e2e

import "testing"

// The label that a policy selects by cannot be taken off and the object deleted then: neither by
// the object itself, nor by the status of a kind whose status may write labels.
func TestALabelThatProtectsStays(t *testing.T) {
	t.Parallel()
	w := newEnforced(t, replace)
	w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps, replicationcontrollers]}]
    HERE
    objectSelector: {matchLabels: {keep: "yes"}}
  protection: {confirmation: Required}`)
	w.make(`
		cm  ledger
		rc  web
	`)
	for _, o := range []string{"configmap/ledger", "rc/web"} {
		if out, err := w.kubectl("label", o, "keep=yes"); err != nil {
			t.Fatal(out)
		}
	}
	const says = "may not be updated without confirmation: it would no longer be protected"
	w.awaitRefusal("label", "configmap/ledger", "keep-", "--dry-run=server")
	w.mustRefuse([]string{says}, "label", "configmap/ledger", "keep-")
	w.mustRefuse([]string{says}, "patch", "rc/web", "--subresource=status", "--type=merge", "-p", `{"metadata":{"labels":{"keep":null}}}`)
	uid := w.of("ledger").uid
	if out, err := w.kubectl("annotate", "configmap/ledger", "weir.dev/confirm-delete="+string(uid)); err != nil {
		t.Fatal(out)
	}
	for _, args := range [][]string{{"label", "configmap/ledger", "keep-"}, {"label", "rc/web", "other=label"}} {
		if out, err := w.kubectl(args...); err != nil {
			t.Errorf("kubectl %v: %s", args, out)
		}
	}
}
