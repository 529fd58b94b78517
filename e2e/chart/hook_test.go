package chart_test

import (
	"context"
	"os/exec"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/restmapper"
)

// The Job of helm uninstall has all the rights that it needs where Weir has few: the finalizer may
// be on what wider rules of before have named.
func TestTheReleaseJobHasItsRightsWhereWeirHasFew(t *testing.T) {
	ctx := t.Context()
	const few = `[{"apiGroups":["apps"],"resources":["deployments"]}]`
	helm(t, "install", "weir", "weir", "--set-json", "rbac.read.rules="+few, "--set-json", "rbac.finalizers.rules="+few, "--set-json", "rbac.propagation.rules="+few)
	defer helm(t, "uninstall", "weir", "--no-hooks")
	maps := shared.client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	held, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "held-", Finalizers: []string{"weir.dev/propagation"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, kubeconfig, err := shared.plane.UserConfig("system:serviceaccount:"+namespace+":weir-release", "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	if err != nil {
		t.Fatal(err)
	}
	args := append(hooked(t), "--kubeconfig", kubeconfig)
	until(t, "the Job's command ends well, with the Job's rights", func(ctx context.Context) (bool, error) { // which hold a moment after roles are made
		out, err := exec.CommandContext(ctx, shared.weir, args...).CombinedOutput()
		if err != nil {
			t.Logf("%v\n%s", err, out)
		}
		return err == nil, nil
	})
	if held, err = maps.Get(ctx, held.Name, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(held.Finalizers) > 0 {
		t.Errorf("it left %v", held.Finalizers)
	}
	if err := maps.Delete(ctx, held.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// hooked makes what Helm makes before the Job of helm uninstall, for as long as the test runs, and
// returns the Job's arguments.
func hooked(t *testing.T) (args []string) {
	t.Helper()
	groups, err := restmapper.GetAPIGroupResources(shared.client.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	hooks := manifests(t, helm(t, "get", "hooks", "weir"))
	for _, o := range hooks {
		switch {
		case o.GetName() != "weir-release": // that of helm test
		case o.GetKind() == "Job":
			containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			args = texts(containers[0].(map[string]any)["args"])
		default:
			if err := apply(t, mapper, o); err != nil {
				t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
			}
			t.Cleanup(func() { remove(t, mapper, o) })
		}
	}
	if !slices.Contains(args, "release") {
		t.Fatalf("there is no Job among %d hooks", len(hooks))
	}
	return args
}

func remove(t *testing.T, mapper meta.RESTMapper, o *unstructured.Unstructured) {
	t.Helper()
	gvk := o.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Error(err)
		return
	}
	// A kind without namespaces has an empty one.
	if err := shared.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace()).Delete(context.WithoutCancel(t.Context()), o.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func texts(v any) []string {
	var out []string
	for _, s := range v.([]any) {
		out = append(out, s.(string))
	}
	return out
}
