package policies_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestServerFillsInDefaults(t *testing.T) {
	for name, c := range map[string]struct{ plural, minimal, want string }{
		"a deletion policy refuses, and fails open": {"deletionpolicies", `
apiVersion: weir.dev/v1beta1
kind: DeletionPolicy
metadata: {name: defaults}
spec:
  match: {resources: [{apiGroups: [apps], resources: [deployments]}]}
  protection: {maxDependents: 0}`, `
match: {scope: "*", kubernetesControllers: Exclude, resources: [{apiGroups: [apps], resources: [deployments]}]}
priority: 0
protection: {maxDependents: 0, inCascades: Refuse, guardSelection: Refuse, requests: [Delete, Evict]}
validationActions: [Deny]
failurePolicy: Ignore`},
		"an owner reference policy allows what it does not name": {"ownerreferencepolicies", `
apiVersion: weir.dev/v1beta1
kind: OwnerReferencePolicy
metadata: {name: defaults}
spec:
  match: {resources: [{apiGroups: [apps], resources: [deployments]}]}
  rules: {dangling: Warn}`, `
match: {scope: "*", kubernetesControllers: Exclude, resources: [{apiGroups: [apps], resources: [deployments]}]}
blockOwnerDeletion: Allow
changes: Allow
validationActions: [Deny]
failurePolicy: Ignore
rules: {dangling: Warn, mismatch: Ignore, otherNamespace: Ignore, namespacedOwner: Ignore, manyControllers: Ignore, manyOwners: Ignore, unservedVersion: Ignore, cycle: Ignore}`},
		"a wave waits": {"drainpolicies", `
apiVersion: weir.dev/v1beta1
kind: DrainPolicy
metadata: {name: defaults}
spec:
  waves: [{name: pods, resources: [{apiGroups: [""], resources: [pods]}]}]`, `
priority: 0
waves: [{name: pods, resources: [{apiGroups: [""], resources: [pods]}], onTimeout: Wait}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := server.client.Resource(resource(c.plural)).Create(t.Context(), mustYAML(t, c.minimal), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(mustYAML(t, c.want).Object, plain(t, got.Object["spec"])); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

// plain turns whole numbers into the floats that JSON has.
func plain(t *testing.T, v any) (out any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
