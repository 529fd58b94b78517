//go:build stories

package stories

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What clients make has to be less than kube-controller-manager can collect: it sends 20 requests a
// second, some four for each owner, and some eighty for each namespace.
const (
	clientGap    = 1500 * time.Millisecond // between what each of them does
	namespaceGap = 6 * time.Second
)

// fate is what must become of a dependent whose owner was deleted.
type fate string

const (
	deleted fate = "deleted"
	stays   fate = "stays"
	either  fate = "either" // a policy is about it that is being switched on or off
)

// dependent is one whose owner was deleted: in its own namespace, or with its namespace, which then
// must go.
type dependent struct {
	name  string
	owner types.UID
	uid   types.UID
	fate  fate
}

// clients make owners with dependents and delete the owners, in each way there is, edit owner
// references, and make and delete namespaces, all the time. They note what was refused, and what
// has to become of what they have made.
type clients struct {
	*story
	cancel context.CancelFunc
	wg     sync.WaitGroup
	anchor *corev1.ConfigMap // an owner that lives
	made   bool              // the policy was made

	mu         sync.Mutex
	policed    bool // whether the policy that keeps dependents of parents holds for certain
	requests   int
	refused    []string
	dependents []dependent     // that are to be looked at
	owners     map[string]bool // that were deleted
	namespaces map[string]bool // that were deleted
}

func (s *story) clients() *clients {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	c := &clients{story: s, cancel: cancel, owners: map[string]bool{}, namespaces: map[string]bool{}}
	anchor := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "anchor"}}
	var err error
	if c.anchor, err = cluster.client.CoreV1().ConfigMaps(s.namespace).Create(ctx, anchor, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	background, foreground, orphan := metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan
	for kind, flow := range map[string]func(context.Context, string){
		"background": func(ctx context.Context, name string) { c.cascade(ctx, name, "owner", &background, deleted) },
		"foreground": func(ctx context.Context, name string) { c.cascade(ctx, name, "owner", &foreground, deleted) },
		"orphan":     func(ctx context.Context, name string) { c.cascade(ctx, name, "owner", &orphan, stays) },
		"policy":     func(ctx context.Context, name string) { c.cascade(ctx, name, "parent", nil, stays) },
		"moved":      func(ctx context.Context, name string) { c.move(ctx, name, false) },
		"shared":     func(ctx context.Context, name string) { c.move(ctx, name, true) },
		"space":      c.space,
	} {
		c.wg.Go(func() { c.flow(ctx, kind, flow) })
	}
	s.Cleanup(func() { cancel(); c.wg.Wait() })
	return c
}

func (c *clients) flow(ctx context.Context, kind string, do func(context.Context, string)) {
	gap := clientGap
	if kind == "space" {
		gap = namespaceGap
	}
	tick := time.NewTicker(gap)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		do(context.WithoutCancel(ctx), fmt.Sprintf("%s-%d", kind, i)) // what has begun is finished
	}
}

// ask counts a request, and whether it was refused.
func (c *clients) ask(what string, request func() error) error {
	err := request()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if err != nil {
		c.refused = append(c.refused, fmt.Sprintf("%s %s: %v", time.Now().UTC().Format(time.TimeOnly), what, err))
	}
	return err
}

// make creates a ConfigMap, for owners if there are any.
func (c *clients) make(ctx context.Context, namespace, name, role string, owners ...*corev1.ConfigMap) (out *corev1.ConfigMap, err error) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"role": role}}}
	for _, o := range owners {
		cm.OwnerReferences = append(cm.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: o.Name, UID: o.UID})
	}
	err = c.ask("create "+name, func() error {
		out, err = cluster.client.CoreV1().ConfigMaps(namespace).Create(ctx, cm, metav1.CreateOptions{})
		return err
	})
	return out, err
}

// drop deletes an owner, and notes what must become of its dependent. policed is what held when the
// owner was made.
func (c *clients) drop(ctx context.Context, owner, of *corev1.ConfigMap, how *metav1.DeletionPropagation, f fate, policed bool) {
	err := c.ask("delete "+owner.Name, func() error {
		return cluster.client.CoreV1().ConfigMaps(c.namespace).Delete(ctx, owner.Name, metav1.DeleteOptions{PropagationPolicy: how})
	})
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if how == nil && (!policed || !c.policed) {
		f = either
	}
	c.owners[owner.Name] = true
	c.dependents = append(c.dependents, dependent{of.Name, owner.UID, of.UID, f})
}

// police says whether the policy holds for certain: what is deleted while it comes or goes may stay
// or fall.
func (c *clients) police(holds bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policed = holds
}

// comeIntoForce makes the policy, if there is none yet, and waits until all of the webhook goes by
// it.
func (c *clients) comeIntoForce() {
	c.Helper()
	if c.made {
		c.awaitFinalizers()
	} else {
		c.keep("Fail")
		c.made = true
	}
	c.police(true)
}

func (c *clients) holds() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.policed
}

// cascade deletes an owner that has a dependent.
func (c *clients) cascade(ctx context.Context, name, role string, how *metav1.DeletionPropagation, f fate) {
	policed := c.holds()
	owner, err := c.make(ctx, c.namespace, name, role)
	if err != nil {
		return
	}
	if of, err := c.make(ctx, c.namespace, name+"-dependent", "dependent", owner); err == nil {
		c.drop(ctx, owner, of, how, f, policed)
	}
}

// move gives a dependent to an owner that lives, or has both from the beginning, and deletes the
// other.
func (c *clients) move(ctx context.Context, name string, both bool) {
	owner, err := c.make(ctx, c.namespace, name, "owner")
	if err != nil {
		return
	}
	owners := []*corev1.ConfigMap{owner}
	if both {
		owners = append(owners, c.anchor)
	}
	of, err := c.make(ctx, c.namespace, name+"-dependent", "dependent", owners...)
	if err == nil && !both {
		patch := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"anchor","uid":%q}]}}`, c.anchor.UID)
		err = c.ask("patch "+of.Name, func() error {
			_, err := cluster.client.CoreV1().ConfigMaps(c.namespace).Patch(ctx, of.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		})
	}
	if err == nil {
		background := metav1.DeletePropagationBackground
		c.drop(ctx, owner, of, &background, stays, true)
	}
}

// space makes a namespace with an owner and a dependent, and deletes it.
func (c *clients) space(ctx context.Context, name string) {
	name = c.namespace + "-" + name
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := c.ask("create namespace "+name, func() error {
		_, err := cluster.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return
	}
	if owner, err := c.make(ctx, name, "owner", "owner"); err == nil {
		_, _ = c.make(ctx, name, "dependent", "dependent", owner) // what is refused is noted
	}
	err = c.ask("delete namespace "+name, func() error {
		return cluster.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	})
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.namespaces[name] = true
	}
}
