package insight

import (
	_ "embed"
	"encoding/json"
	"fmt"
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

// writer returns the field manager that wrote a finalizer of an object, and when, as managedFields
// have it. Clients choose that name. It is empty if it is not known; m may be nil.
func writer(m *metav1.PartialObjectMetadata, finalizer string) (manager, at string) {
	if m == nil {
		return "", ""
	}
	for _, e := range m.ManagedFields {
		if writes(e, finalizer) {
			if at = "an unknown time"; e.Time != nil {
				at = e.Time.UTC().Format("2006-01-02T15:04:05Z")
			}
			return e.Manager, at
		}
	}
	return "", ""
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
