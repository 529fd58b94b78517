package policies

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// TestTheAPIServerJudgesAsWeirDoes has the API server's own code judge random requests by random
// policies as InProcess compiles them, and Weir by the policies themselves.
func TestTheAPIServerJudgesAsWeirDoes(t *testing.T) {
	refused, passed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text := randomPolicy(t)
		parsed, _ := Parse("f", []byte(text))
		set := Build(nil, parsed, Options{})
		if problems := slices.DeleteFunc(set.Problems(), func(p Problem) bool { return p.Warning }); len(
			problems,
		) > 0 {
			t.Fatalf("%s\n%v", text, problems)
		}
		compiled := set.InProcess(environment.DefaultCompatibilityVersion(), false)[0]
		judge := newJudge(t, compiled)
		for range 20 {
			q, mayDelete := randomRequest(t)
			if q.Operation == Update && q.isNamespace() && strings.Contains(text, "namespaceSelector") {
				continue // is left out
			}
			for _, a := range set.Decide(q).Needs {
				q.Answers[a] = Answer(mayDelete)
			}
			weir, server := set.Decide(q), judge.says(t, &q, mayDelete)
			if weir.Allowed != (server == "") {
				t.Fatalf("%s\n%+v\nWeir: %t %s\nthe API server: %s", text, q, weir.Allowed, weir.Message, server)
			}
			if own := "see the runbook"; !weir.Allowed && strings.Contains(text, "runbook") &&
				(!strings.Contains(weir.Message, own) || !strings.Contains(server, own)) {
				t.Fatalf("%s\nof its own message Weir says %s\nthe API server: %s", text, weir.Message, server)
			}
			if weir.Allowed {
				passed++
			} else {
				refused++
			}
		}
	})
	t.Logf("%d refused, %d passed", refused, passed)
	if refused < passed/100 {
		t.Errorf("%d requests were refused, and %d passed: the policies are about too little", refused, passed)
	}
}

// TestBesideWeirNothingMoreIsRefused: of what is left out, less may be refused, and no more.
func TestBesideWeirNothingMoreIsRefused(t *testing.T) {
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		var text []string
		for _, name := range []string{"p", "q"} {
			text = append(text, fmt.Sprintf("{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: %s}, spec: {match: {resources: %s}, priority: %d, %s}}",
				name, rapid.SampledFrom([]string{
					`[{apiGroups: [""], resources: [configmaps]}]`, `[{apiGroups: [batch], resources: [jobs]}]`, `[{apiGroups: ["*"], resources: ["*"]}]`,
					`[{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations]}, {apiGroups: ["*"], resources: ["*"]}]`,
				}).Draw(t, "resources"), rapid.IntRange(0, 1).Draw(t, "priority"),
				rapid.SampledFrom([]string{
					"propagation: {default: Orphan, allowed: [Orphan]}", "propagation: {default: Foreground, allowed: [Foreground, Background]}",
					"propagation: {allowed: [Background]}", "protection: {confirmation: Required}", "propagation: {allowed: [Orphan]}, validationActions: [Warn]",
				}).Draw(t, "spec")))
		}
		parsed, _ := Parse("f", []byte(strings.Join(text, "\n---\n")))
		set := Build(nil, parsed, Options{Namespace: rapid.SampledFrom([]string{"x", "weir-system"}).Draw(t, "own")})
		for _, compiled := range set.InProcess(environment.DefaultCompatibilityVersion(), true) {
			if compiled.Admission == nil || !slices.Contains(compiled.Binding.Spec.ValidationActions, "Deny") {
				continue
			}
			judge := newJudge(t, compiled)
			for range 10 {
				q, mayDelete := randomRequest(t)
				if server := judge.says(t, &q, mayDelete); server != "" {
					refused++
					if weir := set.Decide(q); weir.Allowed {
						t.Fatalf("%s\n%+v\nWeir lets it pass, and the API server refuses: %s", text, q, server)
					}
				}
			}
		}
	})
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// randomPolicy asks for nothing that InProcess leaves out.
func randomPolicy(t *rapid.T) string {
	one := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	match := one(
		"resources",
		`[{apiGroups: [""], resources: [configmaps]}]`,
		`[{apiGroups: ["*"], resources: ["*"]}]`,
		`[{apiGroups: [batch], resources: [jobs]}, {apiGroups: [""], resources: ["*"]}]`,
	) +
		one(
			"excluded",
			"",
			"",
			`, excludeResources: [{apiGroups: [batch], resources: ["*"]}]`,
		) +
		one(
			"names",
			"",
			"",
			", resourceNames: [a]",
		) + one(
		"scope",
		"",
		"",
		", scope: Namespaced",
		", scope: Cluster",
	) +
		one(
			"users",
			"",
			"",
			"",
			"",
			"",
			", excludeUsers: [alice]",
			", excludeGroups: [admins]",
			", excludeServiceAccounts: [x/a]",
			", excludeServiceAccounts: [x/*]",
			", users: [bob], groups: [admins]",
			", serviceAccounts: [x/*], excludeUsers: [bob]",
		) +
		one(
			"controllers",
			"",
			", kubernetesControllers: Judge",
			", kubernetesControllers: Exclude",
		) +
		one(
			"namespaces",
			"",
			"",
			", namespaceSelector: {matchLabels: {env: prod}}",
			", namespaceSelector: {matchExpressions: [{key: env, operator: NotIn, values: [prod]}]}",
		)
	conditions := one("conditions", "", "", `, matchConditions: [{name: c, expression: "oldObject.metadata.name != 'b'"}]`,
		`, matchConditions: [{name: c, expression: "namespaceObject != null && namespaceObject.metadata.name == 'x'"}]`)
	objects := one(
		"objects",
		"",
		"",
		", objectSelector: {matchLabels: {keep: 'yes'}}",
		", objectSelector: {matchExpressions: [{key: keep, operator: DoesNotExist}]}",
	)
	kind, spec := "DeletionPolicy", one(
		"spec",
		"protection: {confirmation: Required, guardSelection: Ignore}",
		"protection: {confirmation: Required, inCascades: Ignore, guardSelection: Ignore}",
		"propagation: {allowed: [Foreground]}",
		"propagation: {allowed: [Background, Orphan]}",
		"propagation: {allowed: [Orphan]}",
		"protection: {confirmation: Required}",
		"blockOwnerDeletion: Deny",
		"changes: RequirePermission",
	)
	switch {
	case strings.HasPrefix(spec, "protection: {confirmation: Required}"):
		match += strings.ReplaceAll(
			objects,
			"DoesNotExist",
			"Exists",
		) // and no conditions, which would be asked again
	case !strings.HasPrefix(spec, "pro"):
		kind = "OwnerReferencePolicy"
		match += objects
	default:
		match += conditions + objects
	}
	return fmt.Sprintf(
		"{apiVersion: weir.dev/v1beta1, kind: %s, metadata: {name: p}, spec: {match: {resources: %s}, %s, failurePolicy: %s%s}}",
		kind,
		match,
		spec,
		one("failurePolicy", "Fail", "Ignore"),
		one("message", "", "", `, message: "see the runbook's page"`,
			`, messageExpression: "'see the runbook of ' + request.operation"`,
			`, message: see the runbook, messageExpression: "' '"`,
			`, message: see the runbook, messageExpression: "'x' + object.metadata.labels['none']"`),
	)
}

// randomRequest is a DELETE, an UPDATE or a CREATE.
func randomRequest(t *rapid.T) (q Question, mayDelete bool) {
	one := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	yes := func(label string) bool { return rapid.IntRange(0, 3).Draw(t, label) == 0 }
	kinds := map[string]schema.GroupVersionKind{
		"configmaps": {
			Version: "v1",
			Kind:    "ConfigMap",
		}, "jobs": {Group: "batch", Version: "v1", Kind: "Job"}, "events": {Version: "v1", Kind: "Event"},
		"namespaces": {
			Version: "v1",
			Kind:    "Namespace",
		}, "persistentvolumes": {Version: "v1", Kind: "PersistentVolume"},
	}
	resource := one(
		"resource",
		append(slices.Sorted(maps.Keys(kinds)), "configmaps", "configmaps", "configmaps", "jobs")...)
	q = Question{
		Operation: Operation(
			one("operation", "DELETE", "DELETE", "DELETE", "UPDATE", "CREATE"),
		), Kind: kinds[resource],
		Resource: schema.GroupVersionResource{Group: kinds[resource].Group, Version: "v1", Resource: resource},
		Name:     one("name", "a", "a", "a", "a", "b", "kube-root-ca.crt", v1beta1.CollectorCanary), Answers: map[Access]Answer{},
		User: User{
			Name: one(
				"user",
				"alice",
				"bob",
				"bob",
				"bob",
				"bob",
				"system:node:n",
				GarbageCollector,
				namespaceController,
				oneIdentity,
				"system:serviceaccount:x:a",
				"system:serviceaccount:kube-system:replicaset-controller",
			),
			Groups: []string{one("group", "admins", "users", "users", "users", nodesGroup)},
		},
	}
	object := func(label string) map[string]any {
		o := map[string]any{"apiVersion": q.Kind.GroupVersion().String(), "kind": q.Kind.Kind}
		m := map[string]any{"name": q.Name, "uid": "u1"}
		if q.Namespace != "" {
			m["namespace"] = q.Namespace
		}
		if yes(label + "labelled") {
			m["labels"] = map[string]any{"keep": "yes", "env": "prod"}
		}
		if yes(label + "confirmed") {
			m["annotations"] = map[string]any{
				v1beta1.ConfirmDeleteAnnotation: one(label+"confirmation", "u1", "u2", ""),
			}
		}
		if f := one(label+"finalizer", "", "", "", "orphan", "foregroundDeletion", "example.com/x"); f != "" {
			m["finalizers"] = []any{f}
		}
		var owners []any
		for i := range rapid.IntRange(0, 2).Draw(t, label+"owners") {
			owner := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": fmt.Sprint("o", i)}
			if yes(label + "blocks") {
				owner["blockOwnerDeletion"] = yes(label + "blocking")
			}
			owners = append(owners, owner)
		}
		if owners != nil {
			m["ownerReferences"] = owners
		}
		o["metadata"] = m
		return o
	}
	switch namespace := map[string]any{"name": "x"}; resource {
	case "persistentvolumes", "namespaces":
	default:
		q.Namespace = "x"
		if yes("production") {
			namespace["labels"] = map[string]any{"env": "prod"}
		}
		if yes("ending") {
			namespace["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		}
		q.NamespaceObject = map[string]any{"metadata": namespace}
	}
	if q.Operation != Create {
		q.OldObject = object("old ")
	}
	if q.Operation != Delete {
		q.Object = object("new ")
	} else {
		if yes("terminates") {
			q.OldObject["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		}
		q.Options = map[string]any{"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
		switch p := one("propagation", "", "", "Orphan", "Background", "Foreground", "true", "false"); p {
		case "true", "false":
			q.Options["orphanDependents"] = p == "true"
		case "":
		default:
			q.Options["propagationPolicy"] = p
		}
		if yes("preconditions") {
			q.Options["preconditions"] = map[string]any{"uid": "u1"}
		}
	}
	if resource == "namespaces" {
		q.Namespace = q.Name
	}
	return q, yes("may delete")
}

// judging is a test, of rapid or not.
type judging interface {
	Context() context.Context
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// judge is the API server's own code with a ValidatingAdmissionPolicy, as the oldest that there may
// be would compile it.
type judge struct {
	p         InProcess
	validator validating.Validator
}

func newJudge(t judging, p InProcess) *judge {
	if p.Admission == nil {
		t.Fatalf("%s is not compiled: %v", p.Policy, p.LeftOut)
	}
	if p.Admission.Spec.ParamKind != nil || p.Binding.Spec.ParamRef != nil {
		t.Fatal("a kind of parameters whose definition is not there yet refuses everything at a cold start")
	}
	// As the API server stores it.
	for _, m := range []*admissionregistrationv1.MatchResources{
		p.Admission.Spec.MatchConstraints, p.Binding.Spec.MatchResources,
	} {
		if m != nil {
			m.NamespaceSelector = cmp.Or(m.NamespaceSelector, &metav1.LabelSelector{})
			m.ObjectSelector = cmp.Or(m.ObjectSelector, &metav1.LabelSelector{})
		}
	}
	spec, with := p.Admission.Spec, admissioncel.OptionalVariableDeclarations{HasAuthorizer: true}
	compiler, err := admissioncel.NewCompositedCompiler(
		environment.MustBaseEnvSet(version.MajorMinor(1, 30)),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range spec.Variables {
		stored := &validating.Variable{Name: v.Name, Expression: v.Expression}
		if r := compiler.CompileAndStoreVariable(stored, with, environment.NewExpressions); r.Error != nil {
			t.Fatalf("variable %s: %v", v.Name, r.Error)
		}
	}
	var conditions, validations, messages []admissioncel.ExpressionAccessor
	for i := range spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&spec.MatchConditions[i]))
	}
	for _, v := range spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		var message admissioncel.ExpressionAccessor
		if v.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		messages = append(messages, message)
	}
	compile := func(list []admissioncel.ExpressionAccessor, with admissioncel.OptionalVariableDeclarations,
	) admissioncel.ConditionEvaluator {
		out := compiler.CompileCondition(list, with, environment.NewExpressions)
		if errs := out.CompilationErrors(); len(errs) > 0 {
			t.Fatal(errs)
		}
		return out
	}
	var matcher matchconditions.Matcher
	if len(conditions) > 0 {
		matcher = matchconditions.NewMatcher(compile(conditions, with), spec.FailurePolicy, "policy", "validate", p.Admission.Name)
	}
	return &judge{
		p,
		validating.NewValidator(
			compile(validations, with),
			matcher,
			compile(nil, with),
			compile(messages, admissioncel.OptionalVariableDeclarations{}), // they see no authorizer
			spec.FailurePolicy,
			nil,
		),
	}
}

// says is empty for a request that passes.
func (j *judge) says(t judging, q *Question, mayDelete bool) string {
	namespaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	there := func(o map[string]any) *corev1.Namespace {
		if o == nil {
			return nil
		}
		ns := &corev1.Namespace{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(o, ns)
		if err == nil {
			err = namespaces.Add(ns)
		}
		if err != nil {
			t.Fatal(err)
		}
		return ns
	}
	namespace := there(q.NamespaceObject)
	if q.isNamespace() {
		there(q.OldObject)
	}
	a := attributesOf(t, q)
	matcher := generic.NewPolicyMatcher(
		matching.NewMatcher(corev1listers.NewNamespaceLister(namespaces), kubernetesfake.NewClientset()),
	)
	interfaces := admission.NewObjectInterfacesFromScheme(runtime.NewScheme())
	matches, resource, kind, err := matcher.DefinitionMatches(a, interfaces,
		validating.NewValidatingAdmissionPolicyAccessor(j.p.Admission))
	if matches && err == nil {
		matches, err = matcher.BindingMatches(a, interfaces,
			validating.NewValidatingAdmissionPolicyBindingAccessor(j.p.Binding))
	}
	if err != nil {
		t.Fatal(err)
	}
	if !matches {
		return ""
	}
	versioned := &admission.VersionedAttributes{
		Attributes:         a,
		VersionedObject:    a.GetObject(),
		VersionedOldObject: a.GetOldObject(),
		VersionedKind:      kind,
	}
	may := authorizer.AuthorizerFunc(
		func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			if mayDelete {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		},
	)
	for _, d := range j.validator.Validate(t.Context(), resource, versioned, nil, namespace, celconfig.RuntimeCELCostBudget, may).Decisions {
		if d.Action == validating.ActionDeny {
			return d.Message
		}
	}
	return ""
}

func attributesOf(t judging, q *Question) admission.Attributes {
	asObject := func(o map[string]any) runtime.Object {
		if o == nil {
			return nil
		}
		return &unstructured.Unstructured{Object: o}
	}
	var options runtime.Object
	if q.Options != nil {
		o := &metav1.DeleteOptions{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(q.Options, o); err != nil {
			t.Fatal(err)
		}
		options = o
	}
	return admission.NewAttributesRecord(
		asObject(q.Object),
		asObject(q.OldObject),
		q.Kind,
		q.Namespace,
		q.Name,
		q.Resource,
		q.Subresource,
		admission.Operation(q.Operation),
		options,
		false,
		&user.DefaultInfo{Name: q.User.Name, Groups: q.User.Groups},
	)
}

// TestWhatNeedsWeirIsNamed: the text of a policy that compiles is in e2e/testdata/compiled.txt, as
// the API server takes it.
func TestWhatNeedsWeirIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		spec, version string
		leftOut       string // field, and how the reason begins
		compiles      bool
	}{
		"counts":                      {`protection: {maxDependents: 3, confirmation: Required}`, "1.36", "spec.protection: the API server cannot count", false},
		"another propagation":         {`propagation: {default: Foreground, allowed: [Foreground]}`, "1.36", "spec.propagation.default: only Weir can change", true},
		"dependents by kind":          {`propagation: {default: Background, dependents: [{apiGroups: [""], resources: [pods], action: Orphan}]}`, "1.36", "spec.propagation.default", false},
		"what objects say":            {`propagation: {annotation: Allow, allowed: [Orphan]}`, "1.36", "spec.propagation.annotation: only Weir can carry out", true},
		"a brake":                     {`brake: {maxObjects: 3}`, "1.36", "spec.brake: only Weir can hold", false},
		"an archive":                  {`archive: {}`, "1.36", "spec.archive: only Weir can record", false},
		"who asks again":              {`protection: {confirmation: Required}`, "1.36", "spec.protection.inCascades: a garbage collector is refused", true},
		"what conditions find":        {`match: {matchConditions: [{name: c, expression: "has(oldObject.metadata.labels)"}]}, protection: {confirmation: Required, inCascades: Ignore}`, "1.36", "spec.protection.guardSelection: conditions are not", true},
		"a condition that is too new": {`match: {matchConditions: [{name: c, expression: "ip('10.0.0.1').family() == 4 && oldObject != null"}]}, protection: {confirmation: Required, inCascades: Ignore}`, "1.29", "spec.match.matchConditions[0].expression: Kubernetes 1.29 does not know it", false},
		"a message that is too new":   {`protection: {confirmation: Required, inCascades: Ignore}, messageExpression: "string(ip('10.0.0.1'))"`, "1.29", "spec.messageExpression: Kubernetes 1.29 does not know it", true},
		"whose a confirmation is":     {`protection: {confirmation: SecondPerson, inCascades: Ignore}`, "1.30", "spec.protection.confirmation: only Weir can tell", true},
		"nothing":                     {`propagation: {allowed: [Orphan]}`, "1.30", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			spec := c.spec
			if match := "match: {"; strings.HasPrefix(spec, match) {
				spec = match + "resources: [{apiGroups: [apps], resources: [deployments]}], " + strings.TrimPrefix(
					spec,
					match,
				)
			} else {
				spec = "match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, " + spec
			}
			set := Build(
				nil,
				sources(
					t,
					"f",
					"{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {"+spec+"}}",
				),
				Options{},
			)
			got := set.InProcess(version.MustParseGeneric(c.version), false)[0]
			var said []string
			for _, l := range got.LeftOut {
				said = append(said, l.Field+": "+l.Why)
			}
			if c.leftOut == "" && len(said) > 0 || !strings.HasPrefix(strings.Join(said, "\n"), c.leftOut) {
				t.Errorf("left out is %q, not %q", said, c.leftOut)
			}
			if (got.Admission != nil) != c.compiles {
				t.Errorf("compiles: %t, not %t", got.Admission != nil, c.compiles)
			}
		})
	}
}
