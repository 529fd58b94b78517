package policies

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/environment"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// BenchmarkUnrelatedUpdate is what the API server takes at each write to find out that a
// ValidatingAdmissionPolicy is about other objects: of another resource, or not selected.
func BenchmarkUnrelatedUpdate(b *testing.B) {
	namespaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := namespaces.Add(&corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"env": "prod"}}}); err != nil {
		b.Fatal(err)
	}
	matcher := generic.NewPolicyMatcher(
		matching.NewMatcher(corev1listers.NewNamespaceLister(namespaces), kubernetesfake.NewClientset()))
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "namespace": "x", "labels": map[string]any{"app": "a"}}}
	q := &Question{Operation: Update,
		Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "x", Name: "a",
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Object: object, OldObject: object}
	a, interfaces := attributesOf(b, q), admission.NewObjectInterfacesFromScheme(runtime.NewScheme())
	for name, match := range map[string]string{
		"another resource": "resources: [{apiGroups: [apps], resources: [deployments]}]",
		"one selector":     "resources: [{apiGroups: [''], resources: [configmaps]}], objectSelector: {matchLabels: {keep: 'yes'}}",
		"two selectors": "resources: [{apiGroups: [''], resources: [configmaps]}], " +
			"namespaceSelector: {matchExpressions: [{key: env, operator: In, values: [prod, test]}]}, " +
			"objectSelector: {matchExpressions: [{key: tier, operator: In, values: [a, b]}]}",
	} {
		set := Build(nil, sources(b, "f", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, "+
			"spec: {match: {"+match+"}, protection: {confirmation: Required}}}"), Options{})
		compiled := newJudge(b, set.InProcess(environment.DefaultCompatibilityVersion())[0]).p
		policy := validating.NewValidatingAdmissionPolicyAccessor(compiled.Admission)
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				if matches, _, _, err := matcher.DefinitionMatches(a, interfaces, policy); matches || err != nil {
					b.Fatal(matches, err)
				}
			}
		})
	}
}
