package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	cleanup = "stories.weir.dev/cleanup"
	// account is where a pod finds who it is, and in which namespace.
	account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	// secret is what the operator needs to reach what it manages, as operators do.
	secret = "operator"
)

type operator struct {
	resources, secrets dynamic.ResourceInterface
}

func newOperator(what string) (*operator, error) {
	part := strings.Split(what, "/")
	if len(part) != 3 {
		return nil, fmt.Errorf("read SERVES: %q is not GROUP/VERSION/RESOURCE", what)
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, err
	}
	namespace, err := os.ReadFile(account + "namespace")
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &operator{
		resources: client.Resource(schema.GroupVersionResource{Group: part[0], Version: part[1], Resource: part[2]}).Namespace(string(namespace)),
		secrets:   client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(string(namespace)),
	}, nil
}

// work lets go what is being deleted, and says what it could not do: kubectl logs shows it.
func (o *operator) work(ctx context.Context) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := o.reconcile(ctx); err != nil {
			fmt.Println("cannot work:", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (o *operator) reconcile(ctx context.Context) error {
	list, err := o.resources.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if _, err := o.secrets.Get(ctx, secret, metav1.GetOptions{}); err != nil {
		return err
	}
	for _, r := range list.Items {
		if r.GetDeletionTimestamp() == nil || !slices.Contains(r.GetFinalizers(), cleanup) {
			continue
		}
		r.SetFinalizers(slices.DeleteFunc(r.GetFinalizers(), func(f string) bool { return f == cleanup }))
		if _, err := o.resources.Update(ctx, &r, metav1.UpdateOptions{}); err != nil {
			return err
		}
		fmt.Println("let go", r.GetName())
	}
	return nil
}
