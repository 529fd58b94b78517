package e2e

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-dev/weir/e2e/plane"
)

// weirUser is who weir is in a cluster. The audit log knows it by this name.
const weirUser = "system:serviceaccount:weir-system:weir"

// identity makes a user that RBAC allows everything, and returns its kubeconfig.
func identity(ctx context.Context, p *plane.Plane, user string) (string, error) {
	return restricted(ctx, p, user, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"})
}

// restricted makes a user that has one role.
func restricted(ctx context.Context, p *plane.Plane, user string, role rbacv1.RoleRef) (string, error) {
	_, kubeconfig, err := p.UserConfig(user)
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		return "", fmt.Errorf("grant %s its rights: %w", user, err)
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		RoleRef:    role,
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("grant %s its rights: %w", user, err)
	}
	return kubeconfig, nil
}
