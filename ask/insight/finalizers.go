package insight

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Finalizer is what is known about a finalizer that is in wide use.
type Finalizer struct {
	// Name is the finalizer; one that ends in * stands for all with that prefix.
	Name string `json:"name"`
	// Component removes it; WaitsFor says when.
	Component string `json:"component"`
	WaitsFor  string `json:"waitsFor"`
	// Look is a command that shows more; NAMESPACE and NAME stand for those of the object.
	Look string `json:"look,omitempty"`
	// Workload is the name of the Deployment, StatefulSet or DaemonSet of the component, as its
	// authors install it.
	Workload string `json:"workload,omitempty"`
}

//go:embed finalizers.yaml
var finalizersFile []byte

var knownFinalizers = sync.OnceValue(func() []Finalizer {
	var file struct {
		Finalizers []Finalizer `json:"finalizers"`
	}
	if err := yaml.UnmarshalStrict(finalizersFile, &file); err != nil {
		panic(fmt.Sprintf("finalizers.yaml: %v", err)) // it is part of the program, and tested
	}
	return file.Finalizers
})

// KnownFinalizer returns what is known about a finalizer, or false.
func KnownFinalizer(name string) (Finalizer, bool) {
	for _, f := range knownFinalizers() {
		prefix, open := strings.CutSuffix(f.Name, "*")
		if f.Name == name || open && strings.HasPrefix(name, prefix) {
			return f, true
		}
	}
	return Finalizer{}, false
}

// whoTakesOff says who removes finalizers.
func whoTakesOff(finalizers []string) string {
	var parts []string
	for _, name := range finalizers {
		if f, ok := KnownFinalizer(name); ok {
			parts = append(parts, fmt.Sprintf("%s removes %s", f.Component, name))
		} else {
			parts = append(parts, "another component removes "+name)
		}
	}
	return strings.Join(parts, ", and ")
}

// Writer is the field manager that wrote a finalizer, as managedFields has it. Clients choose that
// name.
type Writer struct {
	Manager string
	Time    string // RFC 3339; empty if managedFields has none
}

// writer returns who wrote a finalizer of an object, whose metadata may be nil; false if it is not
// known.
func writer(m *metav1.PartialObjectMetadata, finalizer string) (Writer, bool) {
	if m == nil {
		return Writer{}, false
	}
	at := slices.IndexFunc(m.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return writes(e, finalizer) })
	if at < 0 {
		return Writer{}, false
	}
	out := Writer{Manager: m.ManagedFields[at].Manager}
	if t := m.ManagedFields[at].Time; t != nil {
		out.Time = t.UTC().Format("2006-01-02T15:04:05Z")
	}
	return out, true
}

func writes(e metav1.ManagedFieldsEntry, finalizer string) bool {
	if e.FieldsV1 == nil {
		return false
	}
	var fields struct {
		Metadata struct {
			Finalizers map[string]json.RawMessage `json:"f:finalizers"`
		} `json:"f:metadata"`
	}
	if json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	_, ok := fields.Metadata.Finalizers[fmt.Sprintf("v:%q", finalizer)]
	return ok
}
