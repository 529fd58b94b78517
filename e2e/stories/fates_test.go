//go:build stories

package stories

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tell says what clients saw of an upgrade, since it had so many requests of which so many were refused.
func (c *clients) tell(from, to string, took time.Duration, requests, refused int) {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	bad := c.refused[refused:]
	c.Logf("%s → %s: %.0f s; %d requests, %d refused", from, to, took.Seconds(), c.requests-requests, len(bad))
	if len(bad) > 0 {
		c.Errorf("%s → %s: %d requests were refused, the first ones: %q", from, to, len(bad), bad[:min(5, len(bad))])
	}
}

// open says what has not become of things that was to, and what is open.
func (c *clients) open(ctx context.Context, of []dependent, owners, namespaces map[string]bool) (left []string, err error) {
	list, err := cluster.client.CoreV1().ConfigMaps(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	there := map[string]*corev1.ConfigMap{}
	for i := range list.Items {
		o := &list.Items[i]
		there[o.Name] = o
		if owners[o.Name] {
			left = append(left, fmt.Sprintf("%s, with %v", o.Name, o.Finalizers))
		}
	}
	for _, d := range of {
		o := there[d.name]
		if o == nil || o.UID != d.uid || o.DeletionTimestamp != nil {
			if d.fate == stays {
				return nil, fmt.Errorf("lost: %s", d.name)
			}
			if o == nil {
				continue
			}
		}
		if d.fate == deleted || slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == d.owner }) {
			left = append(left, fmt.Sprintf("%s, of %v", d.name, o.OwnerReferences))
		}
	}
	for ns := range namespaces {
		o, err := cluster.client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		if err == nil {
			left = append(left, fmt.Sprintf("namespace %s, %v", ns, conditions(o)))
		} else if !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return left, nil
}

func conditions(ns *corev1.Namespace) (out []string) {
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			out = append(out, string(c.Type)+": "+c.Message)
		}
	}
	return out
}

// settled waits until of all that was deleted until now nothing is left that has to go, and what
// has to stay is there.
func (c *clients) settled() {
	c.Helper()
	c.mu.Lock()
	of, owners, namespaces := c.dependents, c.owners, c.namespaces
	c.dependents, c.owners, c.namespaces = nil, map[string]bool{}, map[string]bool{}
	c.mu.Unlock()
	var last error
	c.until("all that was deleted has gone, with what belonged to it", func(ctx context.Context) error {
		left, err := c.open(ctx, of, owners, namespaces)
		if ctx.Err() != nil {
			return last // which says more
		}
		if err != nil && strings.HasPrefix(err.Error(), "lost: ") {
			c.Fatal(err)
		}
		last = cmp.Or(err, objection(left))
		return last
	})
}

func objection(left []string) error {
	if len(left) == 0 {
		return nil
	}
	slices.Sort(left)
	return fmt.Errorf("%d are left: %s", len(left), strings.Join(left[:min(5, len(left))], "; "))
}
