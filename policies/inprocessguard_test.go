package policies

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func fromYAML(t *testing.T, text string) (o map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestOnlyWeirChangesItsWebhookConfigurations and whom no policy judges, as the API server's own
// code has it.
func TestOnlyWeirChangesItsWebhookConfigurations(t *testing.T) {
	guard := newJudge(t, Build(nil, nil, Options{Self: []string{"system:serviceaccount:weir-system:weir-controller"}}).InProcessGuard())
	const was = "{metadata: {name: weir, ownerReferences: [{uid: n}]}, webhooks: [{name: a, failurePolicy: Fail}]}"
	const admin = "admin"
	for name, c := range map[string]struct {
		operation       Operation
		user, old, next string
		refused         bool
	}{
		"a delete":                         {Delete, admin, was, "", true},
		"of another's":                     {Delete, admin, "{metadata: {name: weird}}", "", false},
		"by Weir":                          {Delete, "system:serviceaccount:weir-system:weir-controller", was, "", false},
		"by the garbage collector":         {Delete, GarbageCollector, was, "", false},
		"under one identity":               {Delete, oneIdentity, was, "", false},
		"by a controller of a provider":    {Update, "system:serviceaccount:kube-system:enforcer", was, "{metadata: {name: weir}}", false},
		"by Weir's webhook's account":      {Delete, "system:serviceaccount:weir-system:weir-webhook", was, "", true},
		"an annotation":                    {Update, admin, was, strings.Replace(was, "name: weir,", "name: weir, annotations: {a: b},", 1), false},
		"a webhook that fails open":        {Update, admin, was, strings.Replace(was, "Fail", "Ignore", 1), true},
		"a webhook less":                   {Update, admin, was, "{metadata: {name: weir, ownerReferences: [{uid: n}]}, webhooks: []}", true},
		"no webhook":                       {Update, admin, was, "{metadata: {name: weir, ownerReferences: [{uid: n}]}}", true},
		"webhooks where there were none":   {Update, admin, "{metadata: {name: weir}}", "{metadata: {name: weir}, webhooks: [{name: a}]}", true},
		"none where there were none":       {Update, admin, "{metadata: {name: weir}}", "{metadata: {name: weir}}", false},
		"an owner that is not there":       {Update, admin, was, strings.Replace(was, "uid: n", "uid: gone", 1), true},
		"an owner where there was none":    {Update, admin, "{metadata: {name: weir}}", "{metadata: {name: weir, ownerReferences: [{uid: gone}]}}", true},
		"no owner":                         {Update, admin, was, "{metadata: {name: weir}, webhooks: [{name: a, failurePolicy: Fail}]}", true},
		"its creation, which Weir repairs": {Create, admin, "", was, false},
	} {
		for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
			q := &Question{Operation: c.operation, User: User{Name: c.user, Groups: []string{"system:masters"}},
				Kind:     schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "Configuration"},
				Resource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}} // a deletecollection has no name
			if c.old != "" {
				q.OldObject = fromYAML(t, c.old)
			}
			if c.next != "" {
				q.Object = fromYAML(t, c.next)
			}
			says := guard.says(t, q, true)
			if c.refused != strings.Contains(says, "kubectl delete validatingadmissionpolicybinding weir-guard") || !c.refused && says != "" {
				t.Errorf("%s of %s: %q", name, resource, says)
			}
		}
	}
}
