package insight

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

// Object names an object.
type Object struct {
	Kind      string    `json:"kind"` // resource.group
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
}

func objectOf(v *graph.View) Object {
	return Object{Kind: v.Kind.String(), Namespace: v.Namespace, Name: v.Name, UID: v.UID}
}

// Short returns resource.group/name, with the namespace before the name unless it is the given one.
func (o Object) Short(namespace string) string {
	if o.Namespace == "" || o.Namespace == namespace {
		return o.Kind + "/" + words.Printable(o.Name)
	}
	return o.Kind + "/" + o.Namespace + "/" + words.Printable(o.Name)
}

func (o Object) String() string { return o.Short("") }

// byName compares objects by their Strings, which it makes only if kinds or namespaces differ, and
// then by uid.
func byName(a, b *Object) int {
	if a.Kind == b.Kind && a.Namespace == b.Namespace {
		if n := strings.Compare(a.Name, b.Name); n != 0 {
			return n
		}
		return strings.Compare(string(a.UID), string(b.UID))
	}
	return strings.Compare(a.String(), b.String())
}

// viewsByName is byName for views.
func viewsByName(a, b graph.View) int {
	if a.Kind == b.Kind && a.Namespace == b.Namespace {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	}
	return strings.Compare(objectOf(&a).String(), objectOf(&b).String())
}

// someNames is how many of many objects are named.
const someNames = 3

// counted names the first objects, and says how many more there are.
func counted(all []Object) string {
	var names []string
	for _, o := range all[:min(len(all), someNames)] {
		names = append(names, o.String())
	}
	return andMore(names, len(all))
}

// SomeOf is counted for names.
func SomeOf(names []string) string { return andMore(names[:min(len(names), someNames)], len(names)) }

func andMore(names []string, of int) string {
	text := strings.Join(names, ", ")
	if more := of - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
