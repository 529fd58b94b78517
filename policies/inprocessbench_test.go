package policies

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// BenchmarkUnrelatedUpdate is what the API server takes at each write to find out that a
// ValidatingAdmissionPolicy and its binding are about other objects: of another resource, or not
// selected.
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
		"another resource": "resources: [{apiGroups: [apps], resources: [deployments]}], " +
			"namespaceSelector: {matchLabels: {env: prod}}, objectSelector: {matchLabels: {keep: 'yes'}}",
		"one selector": "resources: [{apiGroups: [''], resources: [configmaps]}], objectSelector: {matchLabels: {keep: 'yes'}}",
		"two selectors": "resources: [{apiGroups: [''], resources: [configmaps]}], " +
			"namespaceSelector: {matchExpressions: [{key: env, operator: In, values: [prod, test]}]}, " +
			"objectSelector: {matchExpressions: [{key: tier, operator: In, values: [a, b]}]}",
	} {
		set := Build(nil, sources(b, "f", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, "+
			"spec: {match: {"+match+"}, protection: {confirmation: Required}}}"), Options{})
		compiled := newJudge(b, set.InProcess(environment.DefaultCompatibilityVersion(), false)[0]).p
		policy := validating.NewValidatingAdmissionPolicyAccessor(compiled.Admission)
		binding := validating.NewValidatingAdmissionPolicyBindingAccessor(compiled.Binding)
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				matches, _, _, err := matcher.DefinitionMatches(a, interfaces, policy)
				if matches && err == nil {
					matches, err = matcher.BindingMatches(a, interfaces, binding)
				}
				if matches || err != nil {
					b.Fatal(matches, err)
				}
			}
		})
	}
}

// BenchmarkJudgedDelete is what the API server takes to judge a DELETE that passes, by a policy
// that says nothing and by what is compiled.
func BenchmarkJudgedDelete(b *testing.B) {
	object := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "x", UID: "u", Labels: map[string]string{"app": "a"},
			Annotations:     map[string]string{v1beta1.ConfirmDeleteAnnotation: "u"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "o"}},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "bench", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:data":{".":{},"f:n":{}},"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`)}}},
		Data: map[string]string{"n": "1"}}
	a := admission.NewAttributesRecord(nil, object, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "x", "a",
		schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "", admission.Delete, &metav1.DeleteOptions{}, false,
		&user.DefaultInfo{Name: "alice", Groups: []string{"system:authenticated"}})
	versioned := &admission.VersionedAttributes{Attributes: a, VersionedOldObject: object, VersionedKind: a.GetKind()}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{corev1.LabelMetadataName: "x"}}}
	says := inProcessOf("trivial", admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{},
		Validations:      []admissionregistrationv1.Validation{{Expression: "true"}}}, nil)
	for _, spec := range []string{"", "protection: {confirmation: Required}", "propagation: {allowed: [Background]}"} {
		name := "nothing"
		if spec != "" {
			name, _, _ = strings.Cut(spec, ":")
			says = Build(nil, sources(b, "f", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, "+
				"spec: {match: {resources: [{apiGroups: [''], resources: [configmaps]}]}, "+spec+"}}"),
				Options{}).InProcess(environment.DefaultCompatibilityVersion(), false)[0]
		}
		judge := newJudge(b, says)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, d := range judge.validator.Validate(b.Context(), a.GetResource(), versioned, nil, namespace,
					celconfig.RuntimeCELCostBudget, nil).Decisions {
					if d.Action != validating.ActionAdmit {
						b.Fatal(d.Message)
					}
				}
			}
		})
	}
}
