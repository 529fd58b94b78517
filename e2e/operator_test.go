//go:build full

package e2e

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/plane"
)

const cleanup = "clusters.rabbitmq.com/cleanup"

// operator serves the finalizer of a custom resource from inside the namespace:
// it works for as long as its Pod is not told to end, as its ServiceAccount, by a
// RoleBinding, and with a Secret, all of the same namespace.
type operator struct {
	own    dynamic.Interface    // as its ServiceAccount
	secret kubernetes.Interface // the same
	ended  chan struct{}

	mu  sync.Mutex
	err error // the last that it could not do
}

// runOperator starts an operator of a kind, and returns when it has its
// permissions.
func (w *fixture) runOperator(of kind) *operator {
	w.Helper()
	ctx := w.Context()
	meta := metav1.ObjectMeta{Name: "operator"}
	_, err := w.typed.CoreV1().ServiceAccounts(w.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	if err == nil {
		_, err = w.typed.CoreV1().Secrets(w.namespace).Create(ctx, &corev1.Secret{ObjectMeta: meta}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = w.typed.RbacV1().Roles(w.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{of.Group}, Resources: []string{of.resource}, Verbs: []string{"list", "patch"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		}}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = w.typed.RbacV1().RoleBindings(w.namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: meta.Name}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
	token, err := w.typed.CoreV1().ServiceAccounts(w.namespace).CreateToken(ctx, meta.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.make("po operator finalizers=(example.com/node)")
	config := rest.AnonymousClientConfig(w.plane.Config)
	config.BearerToken = token.Status.Token
	o := &operator{ended: make(chan struct{})}
	if o.own, err = dynamic.NewForConfig(config); err != nil {
		w.Fatal(err)
	}
	if o.secret, err = kubernetes.NewForConfig(config); err != nil {
		w.Fatal(err)
	}
	w.until("the operator has its permissions", func(ctx context.Context) (bool, error) {
		return o.reconcile(ctx, w.namespace, of) == nil, nil
	})
	ctx, cancel := context.WithCancel(ctx)
	w.Cleanup(func() { cancel(); <-o.ended })
	go o.run(ctx, w, of)
	return o
}

// run works until the operator's Pod is told to end, and lets the Pod go then, as
// a node would.
func (o *operator) run(ctx context.Context, w *fixture, of kind) {
	defer close(o.ended)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		pod, err := w.typed.CoreV1().Pods(w.namespace).Get(ctx, "operator", metav1.GetOptions{})
		if err == nil && pod.DeletionTimestamp != nil {
			_, err = w.typed.CoreV1().Pods(w.namespace).Patch(ctx, "operator", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			if err == nil {
				return
			}
		}
		if err := o.reconcile(ctx, w.namespace, of); err != nil {
			o.mu.Lock()
			o.err = err
			o.mu.Unlock()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// reconcile lets go the resources that are being deleted. It needs the Secret for
// that, as operators do to reach what they manage.
func (o *operator) reconcile(ctx context.Context, namespace string, of kind) error {
	resources := o.own.Resource(of.gvr()).Namespace(namespace)
	list, err := resources.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if _, err := o.secret.CoreV1().Secrets(namespace).Get(ctx, "operator", metav1.GetOptions{}); err != nil {
		return err
	}
	for _, r := range list.Items {
		if r.GetDeletionTimestamp() == nil {
			continue
		}
		if _, err := resources.Patch(ctx, r.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (o *operator) lastError() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// rabbit is a kind that the shipped order names.
func (w *fixture) rabbit() kind {
	w.Helper()
	crd := w.definition("Cluster", apiextensionsv1.NamespaceScoped, "v1")
	crd.Spec.Group = "rabbitmq.com"
	crd.Name = "clusters.rabbitmq.com"
	w.define(crd)
	return w.kinds["cluster"]
}

// TestOperatorInsideItsNamespaceIsKeptForAsLongAsItIsNeeded: the order that comes
// with Weir lets an operator finish, that nothing else would replace.
func TestOperatorInsideItsNamespaceIsKeptForAsLongAsItIsNeeded(t *testing.T) {
	t.Parallel()
	shipped, err := os.ReadFile("../policies/drain-order.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := newOrdered(t, plane.Options{}, string(shipped))
	o := w.runOperator(w.rabbit())
	w.make("cluster main finalizers=(" + cleanup + ")")
	w.awaitDropped(w.drop())
	w.awaitGone("main", "operator")
	<-o.ended
	if err := o.lastError(); err != nil {
		t.Errorf("the operator could not do its work: %v", err)
	}
}

// TestOperatorInsideItsNamespaceGoesTooEarlyInTheReference: so the test above
// tests something.
func TestOperatorInsideItsNamespaceGoesTooEarlyInTheReference(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.NamespaceOnly})
	o := w.runOperator(w.rabbit())
	w.make("cluster main finalizers=(" + cleanup + ")")
	uid := w.drop()
	<-o.ended
	w.awaitTerminating("main")
	w.until("its permissions are gone", func(ctx context.Context) (bool, error) {
		roles, err := w.typed.RbacV1().RoleBindings(w.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(roles.Items) == 0, err
	})
	if main := w.get("main"); main == nil || len(main.GetFinalizers()) == 0 {
		t.Error("nobody could have removed the finalizer, and it is gone")
	}
	w.unfinalize("main")
	w.awaitDropped(uid)
}
