package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// namespace is where the story takes place.
const namespace = "demo"

var (
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	crds        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// cluster is the plane as the story sees it: a client, and the log in which Weir gives its reasons.
type cluster struct {
	cfg                *rest.Config
	client             dynamic.Interface
	plugin, kubeconfig string
	log                string
	read               int64 // of the log, so far
}

func (c *cluster) in(r schema.GroupVersionResource) dynamic.ResourceInterface {
	if slices.Contains([]schema.GroupVersionResource{namespaces, crds, deletionPolicies, heldCollections}, r) {
		return c.client.Resource(r)
	}
	return c.client.Resource(r).Namespace(namespace)
}

// create makes an object from YAML, and returns it as the server has it.
func (c *cluster) create(
	ctx context.Context, r schema.GroupVersionResource, manifest string, dryRun ...string,
) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		return nil, fmt.Errorf("read manifest of %s: %w", r.Resource, err)
	}
	made, err := c.in(r).Create(ctx, obj, metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		return nil, fmt.Errorf("create %s %s: %w", r.Resource, obj.GetName(), err)
	}
	return made, nil
}

// owned are the names of the objects whose owner has the uid, sorted.
func (c *cluster) owned(ctx context.Context, r schema.GroupVersionResource, owner *unstructured.Unstructured) ([]string, error) {
	list, err := c.in(r).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.Resource, err)
	}
	var names []string
	for i := range list.Items {
		for _, ref := range list.Items[i].GetOwnerReferences() {
			if ref.UID == owner.GetUID() {
				names = append(names, list.Items[i].GetName())
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// until waits for something in the cluster; what says what, for the error.
func until(ctx context.Context, what string, holds func(context.Context) (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, 25*time.Millisecond, time.Minute, true, holds)
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	return nil
}

// running waits until n pods with a label run or have finished, and returns their names.
func (c *cluster) running(ctx context.Context, app string, n int) error {
	return until(ctx, fmt.Sprintf("%d pods of %s run", n, app), func(ctx context.Context) (bool, error) {
		list, err := c.in(pods).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return false, err
		}
		up := 0
		for i := range list.Items {
			phase, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "phase")
			if phase == "Running" || phase == "Succeeded" {
				up++
			}
		}
		return up == n, nil
	})
}

// delete deletes as kubectl does, with an explicit propagation policy, and waits until the objects
// are gone: the named one, and the others that are expected to be deleted with it.
func (c *cluster) delete(ctx context.Context, r schema.GroupVersionResource, name string, policy metav1.DeletionPropagation, alsoDeleted ...object) error {
	fmt.Printf("\n$ kubectl -n %s delete %s %s --cascade=%s\n", namespace, strings.TrimSuffix(r.Resource, "s"), name, strings.ToLower(string(policy)))
	began := time.Now()
	if err := c.in(r).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		return fmt.Errorf("delete %s %s: %w", r.Resource, name, err)
	}
	for _, o := range append(alsoDeleted, object{r, name}) {
		if err := c.gone(ctx, o); err != nil {
			return err
		}
	}
	all := time.Since(began)
	said, err := c.narrate(ctx, began, policy == metav1.DeletePropagationOrphan || len(alsoDeleted) > 0)
	if err != nil {
		return err
	}
	fmt.Printf("  %s: %d actions of Weir, all over after %s\n", name, said, all.Round(time.Millisecond))
	return nil
}

// object is one thing in the cluster.
type object struct {
	resource schema.GroupVersionResource
	name     string
}

func (c *cluster) gone(ctx context.Context, o object) error {
	return until(ctx, fmt.Sprintf("%s %s is gone", o.resource.Resource, o.name), func(ctx context.Context) (bool, error) {
		_, err := c.in(o.resource).Get(ctx, o.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// entry is a line of Weir's log about an action.
type entry struct {
	TS          time.Time `json:"ts"`
	Msg         string    `json:"msg"`
	Object      string    `json:"object"`
	Why         string    `json:"why"`
	Propagation string    `json:"propagation"`
}

// narrate prints what Weir did since began, with its reasons. expected: it must have done
// something; the log may be written a moment after the effect is seen. What it tried again, because
// the object had changed meanwhile, is told once.
func (c *cluster) narrate(ctx context.Context, began time.Time, expected bool) (int, error) {
	told := map[entry]bool{}
	err := until(ctx, "weir says what it did", func(context.Context) (bool, error) {
		log, err := os.ReadFile(c.log)
		if err != nil {
			return false, fmt.Errorf("read weir's log: %w", err)
		}
		whole := int64(strings.LastIndexByte(string(log), '\n') + 1)
		for line := range strings.Lines(string(log[min(c.read, whole):whole])) {
			var e entry
			if json.Unmarshal([]byte(line), &e) != nil || e.Why == "" || e.Object == "" {
				continue
			}
			if e.Propagation != "" {
				e.Msg += " (" + strings.ToLower(e.Propagation) + ")"
			}
			at := e.TS
			if e.TS = (time.Time{}); !told[e] {
				told[e] = true
				fmt.Printf("  %7s  %-24s %s\n%37s%s\n", at.Sub(began).Round(time.Millisecond), e.Msg, e.Object, "", e.Why)
			}
		}
		c.read = whole
		return len(told) > 0 || !expected, nil
	})
	return len(told), err
}
