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

// ServiceAccount makes an identity as Weir has it in a cluster, allowed
// everything by RBAC. An administrator of the group system:masters would skip
// both authorization and the API server's flow control, which users do not.
func ServiceAccount(ctx context.Context, p *plane.Plane) (*rest.Config, string, error) {
	const user = "system:serviceaccount:weir-system:weir"
	cfg, kubeconfig, err := p.UserConfig(user, "system:serviceaccounts", "system:serviceaccounts:weir-system")
	if err != nil {
		return nil, "", err
	}
	return cfg, kubeconfig, grant(ctx, p, user)
}

// User makes an identity that may do everything, and that is no known one: no
// webhook leaves its requests alone.
func User(ctx context.Context, p *plane.Plane, user string) (*rest.Config, string, error) {
	cfg, kubeconfig, err := p.UserConfig(user)
	if err != nil {
		return nil, "", err
	}
	return cfg, kubeconfig, grant(ctx, p, user)
}

func grant(ctx context.Context, p *plane.Plane, user string) error {
	client, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		return fmt.Errorf("grant %s its rights: %w", user, err)
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "weir-bench-"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("grant %s its rights: %w", user, err)
	}
	return nil
}
