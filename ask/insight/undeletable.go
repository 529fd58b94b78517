package insight

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/graph"
)

// undeletable are the namespaces whose deletes the API server refuses, whatever a policy says.
var undeletable = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}

const (
	theAPIServer = "the API server"
	nobodyMay    = "nobody may delete this namespace"
)

func isUndeletable(v *graph.View) bool {
	return v.Kind == namespaces && slices.Contains(undeletable, v.Name)
}
