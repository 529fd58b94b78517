package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// mustRefuse runs kubectl, which must fail and say each of these. The plan of a delete that is
// refused must say the same.
func (w *fixture) mustRefuse(says []string, args ...string) {
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
	if args[0] != "delete" || strings.Contains(says[0], `"fail.delete.weir.dev"`) { // the API server's words, or of a file's policy
		return
	}
	args = slices.DeleteFunc(slices.Clone(args[1:]), func(a string) bool { return a == "--wait=false" })
	w.mustSay(w.mustAsk(append([]string{"plan"}, args...)...), append(says, "a policy refuses the delete: ")...)
}

// notKnown is in each refusal of which Weir cannot say yet what it would refuse.
const notKnown = "not know"

// kubectlOnceKnown is kubectl, asked again while Weir refuses because a kind was defined a moment
// ago, by another test, and may have dependents.
func (w *fixture) kubectlOnceKnown(args ...string) (out string, err error) {
	w.Helper()
	w.until("it is known what kubectl "+strings.Join(args, " ")+" would do", func(context.Context) (bool, error) {
		out, err = w.kubectl(args...)
		return err == nil || !strings.Contains(out, notKnown), nil
	})
	return out, err
}

// protectConfigMaps has a policy protect the ConfigMaps of the namespace.
func (w *fixture) protectConfigMaps(protection string) {
	w.Helper()
	w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  protection: `+protection)
}

// awaitRefusal waits until weir, or the API server by what weir wrote, refuses what kubectl asks
// for, which it only tries.
func (w *fixture) awaitRefusal(args ...string) {
	w.Helper()
	w.until("kubectl "+strings.Join(args, " ")+" is refused", func(context.Context) (bool, error) {
		out, err := w.kubectl(append(args, "--dry-run=server")...)
		return err != nil && (strings.Contains(out, "denied the request") || strings.Contains(out, "denied request")), nil
	})
}

// An object as deep as the API server stores is judged like any other: in a review it is deeper
// still.
func TestDepthGetsNothingPastAPolicy(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		crd := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1")
		w.define(crd)
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: ["`+crd.Spec.Group+`"], resources: [widgets]}]
    HERE
    matchConditions: [{name: kept, expression: "oldObject.keep == true"}]
  protection: {confirmation: Required}`)
		const deepest = 10_000 // the API server refuses one more
		at := w.Context()
		path := "/apis/" + crd.Spec.Group + "/v1/namespaces/" + w.namespace + "/widgets"
		for name, depth := range map[string]int{"flat": 3, "deep": deepest, "deeper": deepest + 1} {
			body := fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Widget","metadata":{"name":%q},"keep":true,"spec":%s%s}`,
				crd.Spec.Group, name, strings.Repeat("[", depth-1), strings.Repeat("]", depth-1))
			err := w.typed.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(at).Error()
			if (err != nil) != (depth > deepest) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		w.awaitRefusal("delete", "widget", "flat")
		w.mustRefuse([]string{"may not be deleted without confirmation"}, "delete", "widget", "deep")
	})
}

// An object as large as etcd takes, full of what JSON writes in six characters, is judged like any
// other: the review of its edit has it twice. On a busy machine the API server may give up before
// it has written all that: nothing is let through then, and the edit is tried again.
func TestSizeGetsNothingPastAPolicy(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("OwnerReferencePolicy", `
  match:
    resources: [{apiGroups: [apps], resources: [deployments]}]
    HERE
  failurePolicy: Fail
  rules: {dangling: Deny}`)
		for name, size := range map[string]int{"small": 1, "large": 1430 << 10} {
			body := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{`+
				`"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"none","env":[{"name":"PADDING","value":"%s"}]}]}}}}`, name, strings.Repeat("<", size))
			if err := w.typed.CoreV1().RESTClient().Post().AbsPath("/apis/apps/v1/namespaces/"+w.namespace+"/deployments").
				SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(w.Context()).Error(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		never := `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"never","uid":"` + string(uuid.NewUUID()) + `"}]}}`
		for _, name := range []string{"small", "large"} {
			w.until(name+" is refused for its owner", func(context.Context) (bool, error) {
				out, err := w.kubectl("patch", "deployment", name, "--type=merge", "-p", never)
				if err == nil {
					return false, errors.New("it is let through")
				}
				return strings.Contains(out, `deployments.apps "`+name+`"`) && strings.Contains(out, "does not exist: the garbage collector would delete"), nil
			})
		}
	})
}

// A confirmation of what a plan shows holds for nothing else.
func TestDeleteIsConfirmedForWhatThePlanShows(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.make(`
			cm  owner
			sec one owners=(owner)
		`)
		w.protectConfigMaps("{maxDependents: 0, confirmation: Required}")
		w.awaitRefusal("delete", "configmap", "owner")
		confirm := func() {
			t.Helper()
			_, command, found := strings.Cut(w.mustAsk("plan", "configmap", "owner"), "To confirm exactly what this plan shows: kubectl ")
			line, _, _ := strings.Cut(command, "\n")
			if !found || !strings.Contains(line, string(w.of("owner").uid)+"/") {
				t.Fatalf("the plan does not say how to confirm it: %q", line)
			}
			w.mustKubectl(strings.Fields(line)...)
		}
		confirm()
		w.make("sec two owners=(owner)")
		w.until("the webhook knows what has come since", func(context.Context) (bool, error) {
			out, err := w.kubectl("delete", "configmap", "owner", "--dry-run=server")
			return err != nil && strings.Contains(out, "for other objects than would be deleted now: look again with kubectl weir plan"), nil
		})
		w.until("a delete of what has come since is refused", func(context.Context) (bool, error) {
			out, err := w.kubectl("delete", "configmap", "owner")
			if err == nil {
				return false, errors.New("it is let through")
			}
			if strings.Contains(out, notKnown) {
				return false, nil // a kind was defined a moment ago, and may have dependents
			}
			w.mustSay(out, "2 objects would also be deleted", "it was confirmed for other objects than would be deleted now")
			return true, nil
		})
		w.alive("owner")
		confirm()
		if out, err := w.kubectlOnceKnown("delete", "configmap", "owner"); err != nil {
			t.Fatalf("what was confirmed is not deleted: %v\n%s", err, out)
		}
		w.awaitGone("owner", "one", "two")
	})
}
