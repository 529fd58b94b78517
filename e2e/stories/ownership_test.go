//go:build stories

package stories

import (
	"errors"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var errNotRefused = errors.New("it was not refused")

// blockOwnerDeletion: who may not hold up the deletion of an owner is refused, with the rule of
// RBAC that is missing; with that rule it is allowed.
func (s *story) blockOwnerDeletion() {
	s.weir()
	s.apply("apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: owner}\n" +
		"spec: {replicas: 0, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: worker, image: WORKER}]}}}\n")
	s.must("create", "serviceaccount", "team")
	s.must("create", "role", "team", "--verb=create", "--resource=configmaps")
	s.must("create", "rolebinding", "team", "--role=team", "--serviceaccount="+s.namespace+":team")
	team := "--as=system:serviceaccount:" + s.namespace + ":team"
	blocking := s.file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: blocks, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: owner, uid: " +
		s.must("get", "replicaset", "owner", "-o", "jsonpath={.metadata.uid}") + ", blockOwnerDeletion: true}]}\n")

	out := s.refused([]string{
		`may not block the deletion of its owner ReplicaSet "owner"`,
		`may not update replicasets/finalizers in API group "apps" in namespace "` + s.namespace + `"`,
	}, "create", "-f", blocking, team)
	_, rule, ok := strings.Cut(out, "or ClusterRole):\n")
	if !ok {
		s.Fatalf("the refusal has no rule of RBAC:\n%s", out)
	}
	var rules []rbacv1.PolicyRule
	if err := yaml.Unmarshal([]byte(rule), &rules); err != nil {
		s.Fatalf("the refusal's rule is no YAML: %v\n%s", err, rule)
	}
	roles := cluster.client.RbacV1().Roles(s.namespace)
	role, err := roles.Get(s.Context(), "team", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	role.Rules = append(role.Rules, rules...)
	if _, err := roles.Update(s.Context(), role, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.until("the rule is enough", s.said("configmap/blocks created", "create", "-f", blocking, team))
}
