package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is certain is an error, at its line; what may be served one day, or is in another's group,
// is none.
func TestResourcesThatNoAPIServes(t *testing.T) {
	for rule, want := range map[string]string{
		"{apiGroups: [apps], resources: [deployments]}":                     "",
		"{apiGroups: [apps], resources: [statefulsets, deployment]}":        `2: there are no deployment in API group "apps": write deployments`,
		"{apiGroups: [''], resources: [po]}":                                `1: there are no po in API group "": write pods`,
		"{apiGroups: [networking.k8s.io], resources: [ingress]}":            `1: there are no ingress in API group "networking.k8s.io": write ingresses`,
		"{apiGroups: [networking.k8s.io], resources: [networkpolicy]}":      `1: there are no networkpolicy in API group "networking.k8s.io": write networkpolicies`,
		"{apiGroups: [storage.k8s.io], resources: [storageclass]}":          `1: there are no storageclass in API group "storage.k8s.io": write storageclasses`,
		"{apiGroups: [''], resources: [endpoint]}":                          `1: there are no endpoint in API group "": write endpoints`,
		"{apiGroups: [''], resources: [deployments]}":                       `1: there are no deployments in API group "": they are in "apps"`,
		"{apiGroups: ['', apps], resources: [pods, deployments]}":           "",
		"{apiGroups: ['', apps], resources: [pods, deploy]}":                `2: there are no deploy in API group "apps": write deployments`,
		"{apiGroups: ['*'], resources: [deployment]}":                       "",
		"{apiGroups: [apps], resources: ['*']}":                             "",
		"{apiGroups: [example.com], resources: [deployment]}":               "",
		"{apiGroups: [apps, example.com], resources: [deployment]}":         "",
		"{apiGroups: [apps], resources: [gizmos]}":                          "",
		"{apiGroups: [apiextensions.k8s.io], resources: [crds]}":            `1: there are no crds in API group "apiextensions.k8s.io": write customresourcedefinitions`,
		"{apiGroups: [metrics.k8s.io], resources: [pods]}":                  "",
		"{apiGroups: [events.k8s.io, ''], resources: [events]}":             "",
		"{apiGroups: [policy], resources: [poddisruptionbudgets, budgets]}": "",
	} {
		var got []string
		for _, p := range Build(nil, sources(t, "p.yaml", "apiVersion: weir.dev/v1beta1\nkind: DeletionPolicy\nmetadata: {name: p}\nspec:\n  protection: {maxDependents: 0}\n  match:\n    resources:\n    - "+
			strings.NewReplacer("resources: [", "resources: [\n      ", ", d", ",\n      d").Replace(rule)+"\n"), Options{}).Problems() {
			if p.Warning || !strings.HasPrefix(p.Field, "spec.match.resources[0].resources[") {
				t.Errorf("%s: %s", rule, p)
			}
			got = append(got, fmt.Sprintf("%d: %s", p.Line-8, p.Message))
		}
		if diff := cmp.Diff(want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rule, diff)
		}
	}
}

// A regular expression is no help to who has to write a name.
func TestHowNamesAreWrittenIsSaidInWords(t *testing.T) {
	for rule, want := range map[string]string{
		"{apiGroups: [apps], resources: [deployments/scale]}": `resources[0].resources[0]: "deployments/scale" is a subresource, and policies are about objects: write deployments`,
		"{apiGroups: [''], resources: [pods/eviction]}":       `resources[0].resources[0]: "pods/eviction" is a subresource: write pods. An eviction is judged as the delete of its pod`,
		"{apiGroups: [''], resources: [pods, Namespace]}":     `resources[0].resources[1]: "Namespace" is not how a resource is written, which is as the lower-case plural: write namespaces`,
		"{apiGroups: [apps], resources: [StatefulSets]}":      `resources[0].resources[0]: "StatefulSets" is not how a resource is written, which is as the lower-case plural: write statefulsets`,
		"{apiGroups: [example.com], resources: [Gizmos]}":     `resources[0].resources[0]: "Gizmos" is not how a resource is written, which is as the lower-case plural: write gizmos`,
		"{apiGroups: [apps/v1], resources: [deployments]}":    `resources[0].apiGroups[0]: "apps/v1" is a group and a version, and policies are about all versions: write "apps"`,
		"{apiGroups: [Core], resources: [pods]}":              `resources[0].apiGroups[0]: "Core" is no API group: write it as in apiVersion, without the version, and the core group as ""`,
	} {
		set := Build(nil, sources(t, "p.yaml", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {match: {resources: ["+rule+"]}, protection: {maxDependents: 0}}}"), Options{})
		var got []string
		for _, p := range set.Problems() {
			got = append(got, strings.TrimPrefix(p.Field, "spec.match.")+": "+p.Message)
		}
		if diff := cmp.Diff(want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rule, diff)
		}
	}
}

// Every name that a policy writes is looked at.
func TestResourcesAreLookedAtEverywhere(t *testing.T) {
	const head = "apiVersion: weir.dev/v1beta1\nmetadata: {name: p}\n"
	for text, field := range map[string]string{
		head + "kind: OwnerReferencePolicy\nspec: {match: {resources: [{apiGroups: [''], resources: [pod]}]}, blockOwnerDeletion: Deny}":                                                                                                    "spec.match.resources[0].resources[0]",
		head + "kind: DrainPolicy\nspec: {waves: [{name: a, resources: [{apiGroups: [''], resources: [pods]}]}, {name: b, resources: [{apiGroups: [''], resources: [pv, svc]}]}]}":                                                          "spec.waves[1].resources[0].resources[0] spec.waves[1].resources[0].resources[1]",
		head + "kind: DeletionPolicy\nspec: {match: {resources: [{apiGroups: [apps], resources: [statefulsets]}]}, propagation: {dependents: [{apiGroups: [''], resources: [pvc], action: Orphan}]}}":                                       "spec.propagation.dependents[0].resources[0]",
		head + "kind: DeletionPolicy\nspec: {match: {resources: [{apiGroups: [apps], resources: [statefulsets]}]}, propagation: {dependents: [{apiGroups: [''], resources: [persistentvolumes], action: Orphan}]}}":                         "spec.propagation.dependents[0].resources",
		head + "kind: DeletionPolicy\nspec: {match: {resources: [{apiGroups: [example.com], resources: [teams]}]}, propagation: {dependents: [{apiGroups: [''], resources: [persistentvolumes], action: Orphan}]}}":                         "",
		head + "kind: DeletionPolicy\nspec: {match: {resources: [{apiGroups: [storage.k8s.io], resources: [storageclasses]}]}, propagation: {dependents: [{apiGroups: [storage.k8s.io], resources: [volumeattachments], action: Orphan}]}}": "",
		head + "kind: DeletionPolicy\nspec: {match: {resources: [{apiGroups: [''], resources: [nodes]}]}, propagation: {dependents: [{apiGroups: [storage.k8s.io], resources: [csinodes], action: Orphan}]}}":                               "warning spec.propagation",
		head + "kind: DeletionPolicy\nspec: {match: {resources: [{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles]}]}, propagation: {default: Foreground}}":                                                                "warning spec.propagation",
		head + "kind: DeletionPolicy\nspec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, propagation: {dependents: [{apiGroups: [''], resources: [pods], action: Orphan}]}}":                                       "warning spec.propagation.dependents[0].resources",
		head + "kind: DeletionPolicy\nspec: {match: {resources: [{apiGroups: [apps], resources: [deployments, statefulsets]}]}, propagation: {dependents: [{apiGroups: [''], resources: [pods, persistentvolumeclaims], action: Orphan}]}}": "",
	} {
		var got []string
		for _, p := range Build(nil, sources(t, "p.yaml", text), Options{}).Problems() {
			at := p.Field
			if p.Warning {
				at = "warning " + at
			}
			got = append(got, at)
		}
		if diff := cmp.Diff(field, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestRuleWithoutAPIGroupsNamesNothing: such a file is broken, and what is told of it is about
// resources in groups.
func TestRuleWithoutAPIGroupsNamesNothing(t *testing.T) {
	for groups, want := range map[string]int{"": 0, "apiGroups: [], ": 0, "apiGroups: [''], ": 1} {
		set := Build(nil, sources(t, "p.yaml", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {match: {resources: [{"+groups+"resources: [secrets]}]}, protection: {confirmation: Required}}}"), Options{})
		if s := set.Statuses()[0]; s.Ready != (want > 0) || len(s.Names) != want {
			t.Errorf("%q: ready %t, names %v", groups, s.Ready, s.Names)
		}
	}
}
