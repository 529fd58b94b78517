package policies_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
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

func TestKubectlGetShowsWhatMatters(t *testing.T) {
	conditions := []any{object{
		"type": "Enforced", "status": "True", "reason": "Reached", "message": "the API server asks",
		"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": int64(1),
	}, object{
		"type": "Ready", "status": "False", "reason": "Invalid", "message": "spec.match.matchConditions[0]: wrong",
		"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": int64(1),
	}}
	const age = "an age"
	for plural, want := range map[string]map[string]any{
		"deletionpolicies": {
			"Name": "shown", "Default": "Foreground", "Actions": `["Deny"]`, "Ready": "False", "Reason": "Invalid", "Age": age,
			"Priority": 0.0, "Matched": 7.0, "Finalizer": 5.0, "Enforced": "True", "Message": "spec.match.matchConditions[0]: wrong",
		},
		"ownerreferencepolicies": {
			"Name": "shown", "Block": "RequirePermission", "Changes": "Allow", "Ready": "False", "Reason": "Invalid", "Age": age,
			"Matched": 7.0, "Enforced": "True", "Message": "spec.match.matchConditions[0]: wrong",
		},
		"drainpolicies": {
			"Name": "shown", "Waves": "pods, rest", "Ready": "False", "Reason": "Invalid", "Age": age,
			"Matched": 7.0, "Enforced": "True", "Message": "spec.match.matchConditions[0]: wrong",
		},
	} {
		t.Run(plural, func(t *testing.T) {
			client := server.client.Resource(resource(plural))
			u := mustYAML(t, base[plural])
			u.SetName("shown")
			u, err := client.Create(t.Context(), u, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			status := object{"conditions": conditions, "matched": int64(7)}
			if plural == "deletionpolicies" {
				status["withFinalizer"] = int64(5)
			}
			if plural == "drainpolicies" {
				status["waves"] = "pods, rest"
			}
			u.Object["status"] = status
			if _, err := client.UpdateStatus(t.Context(), u, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			got := row(t, plural, "shown")
			if a, _ := got["Age"].(string); a != "" && a != "<unknown>" {
				got["Age"] = age
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
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

// row is what kubectl get -o wide shows of one object, by column.
func row(t *testing.T, plural, name string) map[string]any {
	t.Helper()
	config := rest.CopyConfig(server.config)
	gv := resource(plural).GroupVersion()
	config.GroupVersion, config.APIPath = &gv, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	data, err := client.Get().Resource(plural).Name(name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("%d rows: %s", len(table.Rows), data)
	}
	out := map[string]any{}
	for i, c := range table.ColumnDefinitions {
		out[c.Name] = table.Rows[0].Cells[i]
	}
	return out
}
