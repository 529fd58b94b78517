package restore

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Record is an object as it was when it was deleted.
type Record struct {
	Resource schema.GroupVersionResource
	Object   *unstructured.Unstructured
}

// A Ref names an object.
type Ref struct {
	Kind      schema.GroupResource
	Namespace string
	Name      string
}

// RefOf names the object of a Record.
func RefOf(r Record) Ref {
	return Ref{Kind: r.Resource.GroupResource(), Namespace: r.Object.GetNamespace(), Name: r.Object.GetName()}
}

// NamespaceOf returns the namespace of an object; zero if it is in none.
func NamespaceOf(r Ref) Ref {
	if r.Namespace == "" {
		return Ref{}
	}
	return Ref{Kind: namespaces, Name: r.Namespace}
}

// String returns resource.group/name, with the namespace before the name if there is one.
func (r Ref) String() string {
	if r.Namespace != "" {
		return r.Kind.String() + "/" + r.Namespace + "/" + r.Name
	}
	return r.Kind.String() + "/" + r.Name
}

// MarshalJSON writes the kind as resource.group.
func (r Ref) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace,omitempty"`
		Name      string `json:"name"`
	}{r.Kind.String(), r.Namespace, r.Name})
}

func compareRefs(a, b Ref) int { return strings.Compare(a.String(), b.String()) }

// A Kind is one that the cluster serves.
type Kind struct {
	schema.GroupResource
	Kind       string
	Versions   []string // the preferred one first
	Namespaced bool
	Custom     bool // not one of Kubernetes' own kinds
	Status     bool // its status is a subresource

	definition Ref // the recorded definition that has to be there first; zero if it is served already
}

// A World is the input of a plan.
type World struct {
	Tree    string
	Records []Record // if an object is recorded twice, the last record counts
	Kinds   []Kind
	// Live is what has the names that Names returns; Unread is why that is not known.
	Live   map[Ref]*unstructured.Unstructured
	Unread map[Ref]string
}

// Options are what the user asks for.
type Options struct {
	Only    func(Ref) bool // which objects to restore; nil for all
	Replace bool           // replace other objects that have recorded names
	Status  bool           // restore the status of custom resources
}

// Outcome is what becomes of a recorded object.
type Outcome string

// The outcomes. The executor acts on the first four.
const (
	Create  Outcome = "create"
	Replace Outcome = "replace" // another object that has its name
	Patch   Outcome = "patch"   // an object that this restore made, but not completely
	Free    Outcome = "free"    // a volume, for the claim that had it and is made again

	There   Outcome = "there"
	Left    Outcome = "left"    // on purpose: something else makes it, or nothing should
	Taken   Outcome = "taken"   // another object has its name
	Ending  Outcome = "ending"  // what has its name is being deleted
	Blocked Outcome = "blocked" // its kind, its version, or its namespace is not there
	Unknown Outcome = "unknown" // what has its name could not be read
)

// Acts reports whether the executor does something.
func (o Outcome) Acts() bool { return o == Create || o == Replace || o == Patch || o == Free }

// A Link is a reference to an owner that an earlier step makes: its uid is known then.
type Link struct {
	Owner     Ref                   `json:"owner"`
	Reference metav1.OwnerReference `json:"reference"` // without the uid
}

// A Step is what becomes of one object, and why.
type Step struct {
	Ref     Ref       `json:"ref"`
	Version string    `json:"version"`
	UID     types.UID `json:"uid"` // as recorded
	Outcome Outcome   `json:"outcome"`
	Why     string    `json:"why,omitempty"`
	// Dropped are references that it is made without, and why; Notes are its other differences from
	// the record.
	Dropped []string `json:"dropped,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	// Object is what is written, or the record if nothing is. Its references have the uids of living
	// owners; Links are the others.
	Object *unstructured.Unstructured `json:"-"`
	Links  []Link                     `json:"links,omitempty"`
	// References are added to an object that is there.
	References []metav1.OwnerReference `json:"references,omitempty"`
	// Status is written after the object, if it is a subresource. It may be nil.
	Status any `json:"status,omitempty"`
	// Managers are written after the object: they cannot be created. Without them whoever applies it
	// on the server's side the next time has a conflict about each field. nil: nobody does.
	Managers []metav1.ManagedFieldsEntry `json:"-"`
	// Fresh says that a claim gets a new, empty volume.
	Fresh bool `json:"fresh,omitempty"`
	// Under is an owner, or the namespace, that was recorded; zero if neither was.
	Under Ref `json:"under,omitzero"`
	// Level is when the step is taken: steps of one level do not need each other.
	Level int `json:"level"`
	// Live is what has the name now, or nil.
	Live *unstructured.Unstructured `json:"-"`
	// Definition has to be Established before; zero if the kind is served already.
	Definition Ref `json:"definition,omitzero"`
	// Refused is why the user may not do it; empty if nothing is known against it.
	Refused string `json:"refused,omitempty"`
}

// A Plan is how a tree is restored.
type Plan struct {
	Tree  string  `json:"tree"`
	Steps []*Step `json:"steps"` // in order of their levels
}

// Names returns the objects to read before a plan is made: those that have recorded names, their
// owners and namespaces, and the volumes of claims.
func Names(records []Record, kinds []Kind) []Ref {
	found := map[Ref]bool{}
	p := newPlanning(World{Records: records, Kinds: kinds}, Options{})
	for _, i := range p.items {
		found[i.ref] = true
		if ns := NamespaceOf(i.ref); ns != (Ref{}) {
			found[ns] = true
		}
		for _, o := range i.record.Object.GetOwnerReferences() {
			if ref, _ := p.ownerOf(i, o); ref != (Ref{}) {
				found[ref] = true
			}
		}
		if name := volumeOf(i.record.Object); i.ref.Kind == claims && name != "" {
			found[Ref{Kind: volumes, Name: name}] = true
		}
	}
	var list []Ref
	for ref := range found {
		list = append(list, ref)
	}
	slices.SortFunc(list, compareRefs)
	return list
}

// Make makes a plan.
func Make(w World, o Options) *Plan {
	p := newPlanning(w, o)
	for _, i := range p.items {
		p.judge(i)
	}
	for _, i := range p.items {
		p.resolve(i)
	}
	return &Plan{Tree: w.Tree, Steps: p.ordered()}
}

// Acting returns the steps that do something, in order.
func (p *Plan) Acting() (list []*Step) {
	for _, s := range p.Steps {
		if s.Outcome.Acts() {
			list = append(list, s)
		}
	}
	return list
}
