package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// as is a client that acts as a user who may do what rules say, in the fixture's
// namespace.
func (w *fixture) as(user string, rules ...rbacv1.PolicyRule) dynamic.Interface {
	w.Helper()
	w.grant(w.namespace, user, user, rules...)
	config := rest.CopyConfig(w.plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	return client
}

// grant gives a user rights in a namespace, by a role, and waits until the API server knows of them.
func (w *fixture) grant(namespace, role, user string, rules ...rbacv1.PolicyRule) {
	w.Helper()
	name := metav1.ObjectMeta{Name: role}
	_, err := w.typed.RbacV1().Roles(namespace).Create(w.Context(), &rbacv1.Role{ObjectMeta: name, Rules: rules}, metav1.CreateOptions{})
	if err == nil {
		_, err = w.typed.RbacV1().RoleBindings(namespace).Create(w.Context(), &rbacv1.RoleBinding{
			ObjectMeta: name,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
	last := rules[len(rules)-1]
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: last.Verbs[0], Group: last.APIGroups[0], Resource: last.Resources[0]}}}
	w.until(user+" may do what was granted", func(ctx context.Context) (bool, error) {
		told, err := w.typed.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && told.Status.Allowed, err
	})
}

// tryOwned makes a Secret with an owner by dryRun.
func (w *fixture) tryOwned(client dynamic.Interface, name string, r metav1.OwnerReference) error {
	w.Helper()
	k := w.kinds["sec"]
	manifest, err := k.manifest(name, []metav1.OwnerReference{r}, nil)
	if err != nil {
		w.Fatal(err)
	}
	_, err = client.Resource(k.gvr()).Namespace(w.namespace).Create(w.Context(), manifest, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// mayDoSecrets are the rights that a dependent needs, without those about its owner.
var mayDoSecrets = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create", "update", "patch"}}

// Who blocks an owner's deletion must be allowed to update its finalizers; the
// refusal prints the rule that is missing.
func TestBlockingNeedsPermission(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.make("cm owner")
		w.policy("OwnerReferencePolicy", `
  match:
    resources: [{apiGroups: [""], resources: [secrets]}]
    HERE
  blockOwnerDeletion: RequirePermission`)
		lacks := w.as("lacks-"+w.namespace, mayDoSecrets)
		has := w.as("has-"+w.namespace, mayDoSecrets,
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps/finalizers"}, Verbs: []string{"update"}})
		ref := w.of("owner").reference()
		blocking := ref
		blocking.BlockOwnerDeletion = new(true)
		var err error
		w.until("blocking is refused", func(context.Context) (bool, error) {
			err = w.tryOwned(lacks, "s", blocking)
			return err != nil && strings.Contains(err.Error(), "denied the request"), nil // not by RBAC, which takes a moment
		})
		for _, want := range []string{
			`secrets "s" in namespace "` + w.namespace + `" may not block the deletion of its owner ConfigMap "owner": user "lacks-` + w.namespace + `" may not update configmaps/finalizers in API group "" in namespace "` + w.namespace + `"`,
			"- apiGroups: [\"\"]\n  resources: [\"configmaps/finalizers\"]\n  verbs: [\"update\"]",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v\ndoes not have\n%s", err, want)
			}
		}
		if err := w.tryOwned(lacks, "s", ref); err != nil {
			t.Errorf("a reference that does not block: %v", err)
		}
		if err := w.tryOwned(has, "s", blocking); err != nil {
			t.Errorf("with permission: %v", err)
		}
		if err := w.tryOwned(w.dynamic, "s", blocking); err != nil {
			t.Errorf("by the administrator: %v", err)
		}
	})
}

func TestChangesOfReferencesNeedPermission(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.make(`
			cm  owner
			sec child owners=(owner)
		`)
		w.policy("OwnerReferencePolicy", `
  match:
    resources: [{apiGroups: [""], resources: [secrets]}]
    HERE
  changes: RequirePermission`)
		client := w.as("lacks-"+w.namespace, mayDoSecrets)
		patch := func(text string) error {
			_, err := client.Resource(w.of("child").gvr()).Namespace(w.namespace).Patch(t.Context(), "child", "application/merge-patch+json",
				[]byte(text), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		var err error
		w.until("changes are refused", func(context.Context) (bool, error) {
			err = patch(`{"metadata":{"ownerReferences":null}}`)
			return err != nil && strings.Contains(err.Error(), "denied the request"), nil // not by RBAC, which takes a moment
		})
		for _, want := range []string{`may be changed only by a user who may delete it: user "lacks-` + w.namespace + `" may not delete secrets`, `verbs: ["delete"]`} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v\ndoes not have\n%s", err, want)
			}
		}
		if err := patch(`{"metadata":{"labels":{"a":"b"}}}`); err != nil {
			t.Errorf("a change of labels: %v", err)
		}
	})
}

func TestReferencesThatAreMistakesAreFound(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		other := w.beside()
		other.make("cm elsewhere")
		w.make(`
			cm  owner
			sec child owners=(owner)
		`)
		w.policy("OwnerReferencePolicy", `
  match:
    resources: [{apiGroups: [""], resources: [secrets, configmaps]}]
    HERE
  rules: {mismatch: Deny, otherNamespace: Deny, namespacedOwner: Deny, unservedVersion: Deny, cycle: Deny}`)
		ref := w.of("owner").reference()
		mismatch, unserved := ref, ref
		mismatch.Name, unserved.APIVersion = "another", "v9"
		tries := map[string]metav1.OwnerReference{
			"is not what has this uid, which is ConfigMap \"owner\"": mismatch,
			"is named in a version that is not served":               unserved,
			"is in namespace \"" + other.namespace + "\"":            other.of("elsewhere").reference(),
		}
		for want, r := range tries {
			w.until("it is refused: "+want, func(context.Context) (bool, error) {
				err := w.tryOwned(w.dynamic, "s", r)
				if err != nil && !strings.Contains(err.Error(), want) {
					return false, err
				}
				return err != nil, nil
			})
		}
		if err := w.tryOwned(w.dynamic, "s", ref); err != nil {
			t.Errorf("a sound reference: %v", err)
		}
		refs := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"child","uid":%q}]}}`, w.of("child").uid)
		_, err := w.at(w.of("owner")).Patch(t.Context(), "owner", "application/merge-patch+json", []byte(refs), metav1.PatchOptions{})
		if err == nil || !strings.Contains(err.Error(), "depends on configmaps \"owner\"") {
			t.Errorf("a cycle: %v", err)
		}
	})
}
