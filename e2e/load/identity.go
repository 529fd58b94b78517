package load

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/plane"
)

// Weir makes an identity as Weir has it in a cluster, allowed everything by RBAC. An administrator
// of the group system:masters would skip both authorization and the API server's flow control,
// which users do not.
func Weir(ctx context.Context, p *plane.Plane) (*rest.Config, string, error) {
	return User(ctx, p, "system:serviceaccount:weir-system:weir", "system:serviceaccounts", "system:serviceaccounts:weir-system")
}

// User makes an identity that may do everything, and that is no known one: no webhook leaves its
// requests alone.
func User(ctx context.Context, p *plane.Plane, user string, groups ...string) (*rest.Config, string, error) {
	return Bound(ctx, p, "cluster-admin", user, groups...)
}

// Bound makes an identity that may do what a ClusterRole says, and nothing else.
func Bound(ctx context.Context, p *plane.Plane, role, user string, groups ...string) (*rest.Config, string, error) {
	cfg, kubeconfig, err := p.UserConfig(user, groups...)
	if err != nil {
		return nil, "", err
	}
	client, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		return nil, "", err
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, "", fmt.Errorf("grant %s its rights: %w", user, err)
	}
	return cfg, kubeconfig, nil
}
