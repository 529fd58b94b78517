package load

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// weirFinalizer is what the webhook puts on what a policy is about.
const weirFinalizer = "weir.dev/propagation"

// AwaitFinalizers waits until a ConfigMap with these labels gets weir's finalizer when it is made.
func AwaitFinalizers(ctx context.Context, cfg *rest.Config, labels map[string]string) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("wait for objects to be stamped: %w", err)
	}
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Labels: labels}}
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		made, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && slices.Contains(made.Finalizers, weirFinalizer), err
	})
	if err != nil {
		return fmt.Errorf("wait for objects to be stamped: %w", err)
	}
	return nil
}
