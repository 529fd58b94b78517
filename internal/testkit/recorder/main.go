// Command recorder writes a tree of deleted objects into the archive of a cluster, and prints its
// name: a list of objects as kubectl get -o json prints it goes in, the root first. End-to-end tests
// of restores record with it what they then delete themselves.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/archive"
	"github.com/weir-dev/weir/policies/v1beta1"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: recorder KUBECONFIG NAMESPACE < LIST")
		os.Exit(2)
	}
	name, err := record(context.Background(), os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(name)
}

// record writes a tree; namespace is where the archive's key is.
func record(ctx context.Context, kubeconfig, namespace string) (string, error) {
	var list unstructured.UnstructuredList
	if err := json.NewDecoder(os.Stdin).Decode(&list); err != nil {
		return "", err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return "", err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	groups, err := restmapper.GetAPIGroupResources(disco)
	if err != nil {
		return "", err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	root := list.Items[0]
	mapping, err := mappingOf(mapper, root)
	if err != nil {
		return "", err
	}
	tree := &v1beta1.DeletedTree{Spec: v1beta1.DeletedTreeSpec{
		Root: v1beta1.DeletedRoot{Group: mapping.Resource.Group, Version: mapping.Resource.Version, Resource: mapping.Resource.Resource,
			Kind: root.GetKind(), Namespace: root.GetNamespace(), Name: root.GetName(), UID: string(root.GetUID())},
		DeletionTime: ptr.To(metav1.Now()), ExpirationTime: ptr.To(metav1.NewTime(time.Now().Add(time.Hour))),
	}}
	err = archive.NewStore(client, namespace).Write(ctx, tree, func(yield func(archive.Object, error) bool) {
		for _, o := range list.Items {
			raw, err := o.MarshalJSON()
			mapping, mapErr := mappingOf(mapper, o)
			if err == nil {
				err = mapErr
			}
			if err != nil {
				yield(archive.Object{}, err)
				return
			}
			if !yield(archive.Object{Resource: mapping.Resource, Raw: raw}, nil) {
				return
			}
		}
	})
	return tree.Name, err
}

func mappingOf(mapper meta.RESTMapper, o unstructured.Unstructured) (*meta.RESTMapping, error) {
	return mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
}
