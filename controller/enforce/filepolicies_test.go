package enforce

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// reports is a fileReport, and what it writes.
func reports(t *testing.T, fail *error) (r *fileReport, written func() []string) {
	t.Helper()
	client := fake.NewClientset()
	var out []string
	client.PrependReactor("patch", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if *fail != nil {
			return true, nil, *fail
		}
		var m corev1.ConfigMap
		if err := json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &m); err != nil {
			t.Error(err)
		}
		var items []v1beta1.FilePolicy
		if err := json.Unmarshal([]byte(m.Data[v1beta1.FilePoliciesKey]), &items); err != nil {
			t.Error(err)
		}
		out = append(out, fmt.Sprintf("%s/%s of %d", m.Namespace, m.Name, len(items)))
		for _, p := range items {
			line := fmt.Sprint(p.Kind, " ", p.Name, " ", p.File, " ", p.Spec["priority"])
			for _, c := range p.Status.Conditions {
				line += fmt.Sprint(" ", c.Type, "=", c.Status)
			}
			out = append(out, line)
		}
		return true, &m, nil
	})
	return &fileReport{maps: client.CoreV1().ConfigMaps("weir-system"), namespace: "weir-system"}, func() []string {
		now := out
		out = nil
		return now
	}
}

// Policies that are files are told of with the status that they would have, objects are not, and
// nothing is written twice.
func TestPoliciesThatAreFilesAreToldOf(t *testing.T) {
	var fail error
	r, written := reports(t, &fail)
	file := policies.Status{Policy: policies.PolicyKey{Kind: "DeletionPolicy", Name: "a"}, File: "/etc/a.yaml", Ready: true, Spec: map[string]any{"priority": 7}}
	object := policies.Status{Policy: policies.PolicyKey{Kind: "DeletionPolicy", Name: "b"}, Ready: true}
	step := func(what string, f facts, fails bool, all []policies.Status, want ...string) {
		t.Helper()
		if err := r.write(t.Context(), all, f); (err != nil) != fails {
			t.Errorf("%s: %v", what, err)
		}
		if diff := cmp.Diff(want, written()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	all := []policies.Status{file, object}
	fail = apierrors.NewForbidden(corev1.Resource("configmaps"), v1beta1.FilePolicies, nil)
	step("it may not be written", facts{}, true, all)
	fail = nil
	step("it is tried again", facts{}, false, all, "weir-system/weir-file-policies of 1", "DeletionPolicy a /etc/a.yaml 7 Ready=Unknown Valid=True")
	step("nothing has changed", facts{}, false, all)
	refused := facts{reached: reach{metav1.ConditionFalse, v1beta1.ReasonNotReached, "no"}}
	step("the API server does not ask", refused, false, all, "weir-system/weir-file-policies of 1", "DeletionPolicy a /etc/a.yaml 7 Ready=False Valid=True Enforced=False")
	step("the file is gone", refused, false, all[1:], "weir-system/weir-file-policies of 0")
	var large []policies.Status
	for i := range 4 {
		large = append(large, policies.Status{Policy: policies.PolicyKey{Kind: "DeletionPolicy", Name: fmt.Sprint(i)}, File: "f",
			Spec: map[string]any{"priority": 1, "text": strings.Repeat("x", mostReported/3)}})
	}
	if err := r.write(t.Context(), large, facts{}); err != nil || written()[0] != "weir-system/weir-file-policies of 2" {
		t.Errorf("more than a ConfigMap holds: %v", err)
	}
	if err := (*fileReport)(nil).write(t.Context(), all, facts{}); err != nil {
		t.Error(err)
	}
}

// A policy in a file meets no API server that would refuse it. One that forgets its API groups is
// told of as broken, and the others as they are.
func TestPolicyFileWithoutAPIGroupsIsToldOfLikeAnyOther(t *testing.T) {
	sources, problems := policies.Parse("p.yaml", []byte(`
{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: broken}, spec: {priority: 1, match: {resources: [{resources: [secrets]}]}, protection: {confirmation: Required}}}
---
{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: whole}, spec: {priority: 2, match: {resources: [{apiGroups: [""], resources: [secrets, gizmos]}]}, protection: {confirmation: Required}}}
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var fail error
	r, written := reports(t, &fail)
	secrets := served{{Resource: "secrets"}: true}
	if err := r.write(t.Context(), policies.Build(nil, sources, policies.Options{}).Statuses(), facts{serves: secrets}); err != nil {
		t.Error(err)
	}
	want := []string{
		"weir-system/weir-file-policies of 2",
		"DeletionPolicy broken p.yaml 1 Ready=False Valid=False Resolved=True Enforced=False",
		"DeletionPolicy whole p.yaml 2 Ready=Unknown Valid=True Resolved=False",
	}
	if diff := cmp.Diff(want, written()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
