// Package casefile is the format of weir policy test: policies, requests, and the decisions
// expected for them.
//
// It is pure: a file comes in as bytes, its policies through a function that reads them, and the
// results go out. It has no state, no lock and no goroutine. A case asks the same Set as a request
// to the webhook; what the cluster knows is in the case.
//
// It imports policies, and nothing else of Weir's.
package casefile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/policies"
)

// File is a file of weir policy test: policies, and requests with the decisions expected for them.
type File struct {
	// Policies are files, by their path relative to this one.
	Policies []string `json:"policies"`
	Cases    []Case   `json:"cases"`
}

// Case is a request and the decision expected for it.
type Case struct {
	Name string `json:"name"`
	// Request is an AdmissionRequest. Kind, resource, namespace and name default to those of the
	// object, with the usual plural.
	Request admissionv1.AdmissionRequest `json:"request"`
	// NamespaceObject is the live namespace. By default it has the request's name and no labels.
	NamespaceObject *runtime.RawExtension `json:"namespaceObject,omitempty"`
	// Pod is the pod of an eviction, as it is in the cluster.
	Pod   *runtime.RawExtension `json:"pod,omitempty"`
	Facts Facts                 `json:"facts,omitempty"`
	// May are all permissions of the user.
	May    []policies.Access `json:"may,omitempty"`
	Expect Expect            `json:"expect"`
}

// Facts are what the cluster knows.
type Facts struct {
	// Dependents, Instances and Content are what would be deleted with an object, a
	// CustomResourceDefinition, or a Namespace: by default nothing.
	Dependents []policies.KindCount `json:"falls,omitempty"`
	Instances  []policies.KindCount `json:"instances,omitempty"`
	Content    []policies.KindCount `json:"content,omitempty"`
	// Unknown says that none of these is known.
	Unknown bool `json:"unknown,omitempty"`
	// Owners are the objects that owner references may name. By default nothing is known about
	// them.
	Owners []Owner `json:"owners,omitempty"`
	// Kinds are the kinds that the cluster serves. By default nothing is known about them.
	Kinds []Kind `json:"kinds,omitempty"`
	// Depends are the uids of owners that depend on the object of the request.
	Depends []string `json:"depends,omitempty"`
	// WeirCollects says that Weir collects garbage, and no other collector: replace mode.
	WeirCollects bool `json:"weirCollects,omitempty"`
}

// Owner is an object that an owner reference may name.
type Owner struct {
	UID        string `json:"uid"`
	Absent     bool   `json:"absent,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
}

// Kind is a kind in a version that the cluster serves, or knows and does not serve.
type Kind struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources,omitempty"`
	Namespaced bool     `json:"namespaced,omitempty"`
	Unserved   bool     `json:"unserved,omitempty"`
}

// Expect is the expected decision. What is left out is not compared, except for Allowed.
type Expect struct {
	Allowed bool `json:"allowed"`
	// Code is the code of a refusal.
	Code int32 `json:"code,omitempty"`
	// Message and Warnings are parts of what the user is told. An empty list of warnings says that
	// there are none.
	Message  string   `json:"message,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Audit are parts of audit annotations, by key.
	Audit       map[string]string `json:"audit,omitempty"`
	Propagation string            `json:"propagation,omitempty"`
	// By is the DeletionPolicy whose propagation holds.
	By string `json:"by,omitempty"`
	// BrakedBy is the DeletionPolicy whose brake holds the deletion if more would also be deleted
	// than it allows; a warning says whether that is so.
	BrakedBy string `json:"brakedBy,omitempty"`
	// AddsFinalizer is Put, Take or Keep.
	AddsFinalizer string `json:"stamp,omitempty"`
	Arm           *bool  `json:"arm,omitempty"`
	// Patch is the whole JSON patch.
	Patch []policies.PatchOperation `json:"patch,omitempty"`
}

// Result is the result of a case. Diff is empty if it passed.
type Result struct {
	File string `json:"file"`
	Name string `json:"name"`
	Diff string `json:"diff,omitempty"`
}

// HasCases reports whether a file has cases, and not, for instance, policies. A file that cannot be
// read, or that has them in a later document, counts if it looks like one: Run then reports what is
// wrong, and no case is left out unnoticed.
func HasCases(data []byte) bool {
	var f struct {
		Cases []any `json:"cases"`
	}
	return yaml.Unmarshal(data, &f) == nil && f.Cases != nil || looksLikeCases.Match(data)
}

var looksLikeCases = regexp.MustCompile(`(?m)^cases:`)

// Run runs the cases of a file. read reads a file of policies by its path in the file. An error
// means that the cases could not be run.
func Run(file string, data []byte, read func(path string) ([]byte, error)) ([]Result, error) {
	if documents(data) > 1 { // all but the first would be left out
		return nil, fmt.Errorf("read cases of %s: it has more than one document: each needs a file of its own", file)
	}
	var f File
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return nil, fmt.Errorf("read cases of %s: %s", file, strings.Join(strings.Fields(err.Error()), " "))
	}
	if len(f.Policies) == 0 || len(f.Cases) == 0 {
		return nil, fmt.Errorf("read cases of %s: it names no policies, or has no cases", file)
	}
	var sources []policies.Source
	var problems []policies.Problem
	for _, p := range f.Policies {
		text, err := read(p)
		if err != nil {
			return nil, fmt.Errorf("read policies of %s: %w", file, err)
		}
		s, bad := policies.Parse(p, text)
		sources, problems = append(sources, s...), append(problems, bad...)
	}
	set := policies.Build(nil, sources, policies.Options{})
	problems = append(problems, set.Problems()...)
	for _, p := range problems {
		if !p.Warning {
			return nil, fmt.Errorf("compile policies of %s: %s", file, p)
		}
	}
	var out []Result
	for i, c := range f.Cases {
		if c.Name == "" {
			c.Name = fmt.Sprintf("cases[%d]", i)
		}
		q, err := c.question()
		if err != nil {
			return nil, fmt.Errorf("read case %q of %s: %w", c.Name, file, err)
		}
		out = append(out, Result{File: file, Name: c.Name, Diff: c.Expect.diff(c.decide(set, q))})
	}
	return out, nil
}

// documents counts the documents that are not empty.
func documents(data []byte) (n int) {
	for _, d := range bytes.Split(append([]byte("\n"), data...), []byte("\n---")) {
		var one any
		if yaml.Unmarshal(d, &one) != nil || one != nil {
			n++
		}
	}
	return n
}

// decide asks the set until the decision needs no more answers, which come from the user's
// permissions.
func (c *Case) decide(set *policies.Set, q policies.Question) policies.Decision {
	q.Answers, q.Quotes = map[policies.Access]policies.Answer{}, true
	for {
		d := set.Decide(q)
		asks := append(d.Needs, d.Discloses...)
		if len(asks) == 0 {
			return d
		}
		for _, a := range asks {
			q.Answers[a] = policies.Answer(slices.ContainsFunc(c.May, func(m policies.Access) bool { return grants(m, a) }))
		}
	}
}

// grants reports whether permission a covers b. A version, namespace or name that is empty in a
// matches any.
func grants(a, b policies.Access) bool {
	return a.Verb == b.Verb && a.Group == b.Group && a.Resource == b.Resource && a.Subresource == b.Subresource &&
		(a.Version == "" || a.Version == b.Version) && (a.Namespace == "" || a.Namespace == b.Namespace) &&
		(a.Name == "" || a.Name == b.Name)
}

func (c *Case) question() (policies.Question, error) {
	q, err := policies.FromRequest(&c.Request)
	if err != nil {
		return policies.Question{}, err
	}
	o := unstructured.Unstructured{Object: q.Object}
	if q.Object == nil {
		o.Object = q.OldObject
	}
	if q.Kind.Empty() {
		q.Kind = schema.FromAPIVersionAndKind(o.GetAPIVersion(), o.GetKind())
	}
	if q.Resource.Empty() && q.Kind.Group == "policy" && q.Kind.Kind == "Eviction" && q.Subresource == "" {
		q.Resource, q.Subresource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "eviction"
	}
	if q.Resource.Empty() {
		q.Resource, _ = meta.UnsafeGuessKindToResource(q.Kind)
	}
	ofNamespace := q.Resource.GroupResource() == schema.GroupResource{Resource: "namespaces"}
	if q.Namespace == "" {
		if q.Namespace = o.GetNamespace(); ofNamespace {
			q.Namespace = o.GetName() // as in the API server's requests
		}
	}
	if q.Name == "" {
		q.Name = o.GetName()
	}
	if c.NamespaceObject != nil {
		if err := json.Unmarshal(c.NamespaceObject.Raw, &q.NamespaceObject); err != nil {
			return policies.Question{}, fmt.Errorf("decode namespaceObject: %w", err)
		}
	} else if q.Namespace != "" && !ofNamespace {
		q.NamespaceObject = map[string]any{"metadata": map[string]any{"name": q.Namespace}}
	}
	if q.Facts, q.Collector = c.Facts.facts(), policies.OthersCollect; c.Facts.WeirCollects {
		q.Collector = policies.WeirCollects
	}
	return c.evicted(q)
}

// evicted returns the delete of a pod that an eviction amounts to. The webhook reads the pod, whose
// name the request has.
func (c *Case) evicted(q policies.Question) (policies.Question, error) {
	if !q.Evicts() {
		return q, nil
	}
	if c.Pod == nil {
		return q, errors.New("an eviction is judged as the delete of its pod: the case needs the field pod, " +
			"the pod as it is in the cluster")
	}
	var pod map[string]any
	if err := json.Unmarshal(c.Pod.Raw, &pod); err != nil {
		return q, fmt.Errorf("decode pod: %w", err)
	}
	if u := (unstructured.Unstructured{Object: pod}); u.GetName() != q.Name || u.GetNamespace() != q.Namespace {
		return q, fmt.Errorf("the request evicts %q in namespace %q, and pod is %q in namespace %q", q.Name,
			q.Namespace, u.GetName(), u.GetNamespace())
	}
	return q.AsEvicted(q.Resource, pod), nil
}

func (f *Facts) facts() policies.Facts {
	out := policies.Facts{
		Dependents: func(s policies.Search, _ int) (policies.AlsoDeleted, bool) {
			var also policies.AlsoDeleted
			switch {
			case s.Namespace != "":
				also.Kinds = append(also.Kinds, f.Content...)
			case !s.Instances.Empty():
				also.Kinds = append(also.Kinds, f.Instances...)
			}
			for _, k := range f.Dependents {
				if !s.Kept(schema.ParseGroupResource(k.Resource)) {
					also.Kinds = append(also.Kinds, k)
				}
			}
			return also, !f.Unknown
		},
		Instances: func(schema.GroupResource) (policies.AlsoDeleted, bool) {
			return policies.AlsoDeleted{Kinds: f.Instances}, !f.Unknown
		},
		Content: func(string) (policies.AlsoDeleted, bool) { return policies.AlsoDeleted{Kinds: f.Content}, !f.Unknown },
		Depends: func(owner, _ types.UID) bool { return slices.Contains(f.Depends, string(owner)) },
	}
	out.Owner = func(ref policies.OwnerRef, _ string) policies.Owner {
		for _, o := range f.Owners {
			if o.UID != string(ref.UID) {
				continue
			}
			if o.Absent {
				return policies.Owner{Answer: policies.Absent}
			}
			return policies.Owner{Answer: policies.Present,
				Kind: schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind(), Namespace: o.Namespace, Name: o.Name}
		}
		return policies.Owner{}
	}
	out.Kind = func(gvk schema.GroupVersionKind) policies.Kind {
		for _, k := range f.Kinds {
			if schema.FromAPIVersionAndKind(k.APIVersion, k.Kind) != gvk {
				continue
			}
			kind := policies.Kind{Known: true, Served: !k.Unserved, Namespaced: k.Namespaced}
			for _, r := range k.Resources {
				kind.Resources = append(kind.Resources, schema.GroupResource{Group: gvk.Group, Resource: r})
			}
			return kind
		}
		return policies.Kind{}
	}
	return out
}

var changeNames = [...]string{policies.KeepFinalizers: "Keep", policies.AddFinalizers: "Put",
	policies.RemoveFinalizers: "Take"}

// diff returns, line by line, what is not as expected.
func (e *Expect) diff(d policies.Decision) string {
	var b strings.Builder
	add := func(field string, want, got any, differs bool) {
		if differs {
			fmt.Fprintf(&b, "%s:\n  - %s\n  + %s\n", field, indent(want), indent(got))
		}
	}
	said := func(field, want, got string) { add(field, want, got, want != "" && want != got) }
	message, warnings := strings.TrimSpace(e.Message), strings.Join(d.Warnings, "\n")
	add("allowed", e.Allowed, fmt.Sprintf("%t %s", d.Allowed, d.Message), e.Allowed != d.Allowed)
	add("code", e.Code, d.Code, e.Code != 0 && e.Code != d.Code)
	add("message", message, d.Message, !strings.Contains(d.Message, message))
	add("warnings", "none", warnings, e.Warnings != nil && len(e.Warnings) == 0 && len(d.Warnings) > 0)
	for _, w := range e.Warnings {
		add("warnings", w, warnings, !slices.ContainsFunc(d.Warnings, func(g string) bool { return strings.Contains(g, w) }))
	}
	for _, k := range slices.Sorted(maps.Keys(e.Audit)) {
		got, ok := d.Audit[k]
		add("audit."+k, e.Audit[k], got, !ok || !strings.Contains(got, e.Audit[k]))
	}
	said("propagation", e.Propagation, string(d.Propagation))
	said("by", e.By, d.By)
	said("brakedBy", e.BrakedBy, d.BrakedBy)
	said("stamp", e.AddsFinalizer, changeNames[d.Finalizers])
	if e.Arm != nil {
		add("arm", *e.Arm, d.Arm, *e.Arm != d.Arm)
	}
	add("patch", e.Patch, d.Patch, e.Patch != nil && fmt.Sprint(e.Patch) != fmt.Sprint(d.Patch))
	return b.String()
}

func indent(v any) string { return strings.ReplaceAll(fmt.Sprint(v), "\n", "\n    ") }
