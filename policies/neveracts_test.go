package policies

import (
	"fmt"
	"strings"
	"testing"
)

// What a policy says and what can never come of it is found when it is written.
func TestRulesThatNeverAct(t *testing.T) {
	const (
		deletes = "dependents: [{apiGroups: [''], resources: [persistentvolumeclaims], action: Delete}]"
		keeps   = "dependents: [{apiGroups: [''], resources: [persistentvolumeclaims], action: Orphan}]"
	)
	for spec, want := range map[string]string{
		"default: Orphan, allowed: [Orphan], " + deletes:             "error: spec.propagation.dependents: it can never act",
		"default: Orphan, allowed: [Orphan, Background], " + deletes: "error: spec.propagation.dependents: it can never act",
		"allowed: [Orphan], " + deletes:                              "error: spec.propagation.dependents: it can never act",
		"default: Orphan, " + deletes:                                "warning: spec.propagation.dependents: it changes nothing", // Foreground can be asked for
		"default: Background, " + deletes:                            "warning: spec.propagation.dependents: it changes nothing",
		deletes:                                                      "warning: spec.propagation.dependents: it changes nothing",
		"default: Orphan, allowed: [Orphan], " + keeps:               "", // collectors are not judged, and may ask for another
		"default: Background, " + keeps:                              "",
		"dependents: [{apiGroups: [''], resources: [persistentvolumeclaims], action: Delete}, {apiGroups: ['*'], resources: ['*'], action: Orphan}]":                                                             "",
		"dependents: [{apiGroups: ['*'], resources: ['*'], action: Orphan}, {apiGroups: [''], resources: [persistentvolumeclaims], action: Delete}]":                                                             "warning: spec.propagation.dependents[1]: it never applies: entries before it name persistentvolumeclaims",
		"dependents: [{apiGroups: [''], resources: ['*'], action: Orphan}, {apiGroups: ['', apps], resources: [persistentvolumeclaims], action: Delete}]":                                                        "",
		"dependents: [{apiGroups: [''], resources: ['*'], action: Orphan}, {apiGroups: [''], resources: [events], action: Delete}]":                                                                              "", // which '*' leaves out
		"dependents: [{apiGroups: [''], resources: [secrets], action: Orphan}, {apiGroups: [''], resources: [configmaps], action: Delete}, {apiGroups: [''], resources: [configmaps, secrets], action: Delete}]": "warning: spec.propagation.dependents[2]: it never applies: entries before it name configmaps",
	} {
		wantProblem(t, "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {match: {resources: [{apiGroups: [apps], resources: [statefulsets]}]}, propagation: {"+spec+"}}}", want)
	}
	for waves, want := range map[string]string{
		"{name: a, resources: [{apiGroups: [''], resources: ['*']}]}, {name: b, resources: [{apiGroups: [''], resources: [pods]}]}":                                        "warning: spec.waves[1].resources[0]: it never applies: entries before it name pods",
		"{name: a, objectSelector: {matchLabels: {a: b}}, resources: [{apiGroups: [''], resources: ['*']}]}, {name: b, resources: [{apiGroups: [''], resources: [pods]}]}": "",
	} {
		wantProblem(t, "{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: p}, spec: {waves: ["+waves+"]}}", want)
	}
}

// A policy that keeps all pods keeps those of Jobs that Kubernetes deletes when they have had their
// time.
func TestPoliciesThatKeepPodsOfDeletedJobs(t *testing.T) {
	const warns = "warning: spec.protection: pods that are collected with their Job or ReplicaSet are kept"
	for spec, want := range map[string]string{
		"match: {resources: [{apiGroups: [''], resources: [pods]}]}, protection: {confirmation: Required}":                                                           warns,
		"match: {resources: [{apiGroups: ['*'], resources: ['*']}]}, protection: {confirmation: Required}":                                                           warns,
		"match: {resources: [{apiGroups: ['*'], resources: ['*']}], namespaceSelector: {matchLabels: {a: b}}}, protection: {confirmation: Required}":                 warns,
		"match: {resources: [{apiGroups: ['*'], resources: ['*']}], excludeResources: [{apiGroups: [''], resources: [pods]}]}, protection: {confirmation: Required}": "",
		"match: {resources: [{apiGroups: [''], resources: [pods]}], objectSelector: {matchLabels: {a: b}}}, protection: {confirmation: Required}":                    "",
		"match: {resources: [{apiGroups: [''], resources: [pods]}]}, protection: {confirmation: Required, inCascades: Ignore}":                                       "",
		"match: {resources: [{apiGroups: [''], resources: [secrets]}]}, protection: {confirmation: Required}":                                                        "",
	} {
		wantProblem(t, "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {"+spec+"}}", want)
	}
}

// wantProblem wants one problem of a policy, which begins so, or none.
func wantProblem(t *testing.T, text, want string) {
	t.Helper()
	var got []string
	for _, p := range Build(nil, sources(t, "p.yaml", text), Options{}).Problems() {
		level := "error"
		if p.Warning {
			level = "warning"
		}
		got = append(got, fmt.Sprintf("%s: %s: %s", level, p.Field, p.Message))
	}
	if all := strings.Join(got, "\n"); len(got) > 1 || (want == "") != (all == "") || !strings.HasPrefix(all, want) {
		t.Errorf("%s:\n%s\nwant %s", text, all, want)
	}
}
