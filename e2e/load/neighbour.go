package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// A Neighbour is a controller that has nothing to do with collecting: it reads one object of a
// namespace of its own, and writes to it.
type Neighbour struct {
	in typedcorev1.ConfigMapInterface
}

const neighbourObject = "neighbour"

// NewNeighbour gives a neighbour an identity as controllers have it, a ServiceAccount, and its
// object.
func NewNeighbour(ctx context.Context, p *plane.Plane) (*Neighbour, error) {
	const user = "system:serviceaccount:neighbour:neighbour"
	cfg, _, err := p.UserConfig(user, "system:serviceaccounts", "system:serviceaccounts:neighbour")
	if err == nil {
		err = grant(ctx, p, user)
	}
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a neighbour: %w", err)
	}
	namespace, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-neighbour-"}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("make a neighbour: %w", err)
	}
	n := &Neighbour{client.CoreV1().ConfigMaps(namespace.Name)}
	if _, err := n.in.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: neighbourObject}}, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("make a neighbour: %w", err)
	}
	return n, nil
}

// Answers are how long a neighbour's requests took.
type Answers struct{ Get, Patch []Latency }

// Ask has the neighbour read and write, each one request after the other, until stop is called.
func (n *Neighbour) Ask(ctx context.Context) (stop func() (Answers, error)) {
	gets := timed(ctx, func(ctx context.Context) error {
		_, err := n.in.Get(ctx, neighbourObject, metav1.GetOptions{})
		return err
	})
	patches := timed(ctx, func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"data":{"now":%q}}`, time.Now().Format(time.RFC3339Nano))
		_, err := n.in.Patch(ctx, neighbourObject, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	return func() (Answers, error) {
		get, getErr := gets()
		patch, patchErr := patches()
		if err := errors.Join(getErr, patchErr); err != nil {
			return Answers{}, fmt.Errorf("ask as a neighbour: %w", err)
		}
		return Answers{get, patch}, nil
	}
}
