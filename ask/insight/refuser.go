package insight

import (
	"fmt"
	"regexp"
)

// The API server names who refuses in its messages, and nowhere else.
var (
	deniedBy     = regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)
	unanswering  = regexp.MustCompile(`failed calling webhook "([^"]+)"`)
	policyDenied = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)'`)
	conversion   = regexp.MustCompile(`conversion webhook for (.+?) failed`)
	invalid      = regexp.MustCompile(`([\w.-]+ "[^"]*") is invalid: `)
	noNamespace  = regexp.MustCompile(`^namespaces "([^"]+)" not found$`)
	mayNot       = regexp.MustCompile(`User "([^"]*)" cannot \w+ resource`)
)

// whoMakesNamespaces is the actor for an object whose namespace does not exist.
const whoMakesNamespaces = "whoever may create namespaces: kubectl create namespace %s lets the deletion go on"

// unnamed is the actor if a message does not name who refuses.
const unnamed = "not known: the message does not say who refuses"

// refuser returns who is behind a message of the API server about objects of a kind, and a command
// that shows more. Both are empty if the message names nobody.
func refuser(kind, message string) (actor, look string) {
	for _, by := range []struct {
		says        *regexp.Regexp
		actor, look string
	}{
		{deniedBy, "whoever runs the admission webhook %s",
			"kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide"},
		{unanswering, "whoever runs the admission webhook %s, which does not answer",
			"kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide"},
		{policyDenied, "whoever wrote the ValidatingAdmissionPolicy %s",
			"kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings"},
		{invalid, "whoever makes %s valid again: its writer, or whoever writes the schema of its kind", ""},
		{conversion, "whoever runs the conversion webhook of %s",
			"kubectl get crd " + kind + " -o jsonpath='{.spec.conversion}'"},
		{noNamespace, whoMakesNamespaces, ""},
		{mayNot, "whoever grants the user %s its rights (RBAC)", "kubectl get clusterrolebindings,rolebindings -A -o wide"},
	} {
		if m := by.says.FindStringSubmatch(message); m != nil {
			return fmt.Sprintf(by.actor, m[1]), by.look
		}
	}
	return "", ""
}
