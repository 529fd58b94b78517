package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An Object is what is compared of one: uids are told by logical names, and orders do not count.
type Object struct {
	Terminating bool
	Finalizers  []string
	Owners      []Reference
}

func (o Object) String() string {
	text := "owners=(" + texts(o.Owners) + ")"
	if len(o.Finalizers) > 0 {
		text += " finalizers=(" + strings.Join(o.Finalizers, ", ") + ")"
	}
	if o.Terminating {
		text += " terminating"
	}
	return text
}

// sorted is the object with its lists in one order.
func (o Object) sorted() Object {
	o.Finalizers = slices.Sorted(slices.Values(o.Finalizers))
	o.Owners = slices.SortedFunc(slices.Values(o.Owners), func(a, b Reference) int {
		return strings.Compare(a.String(), b.String())
	})
	return o
}

// State is a world at one moment, by logical name.
type State map[string]Object

// A Difference is an object of which the two sides do not have the same. Nil means that it is gone.
type Difference struct {
	Name            string
	Reference, Weir *Object
}

func (d Difference) String() string {
	side := func(o *Object) string {
		if o == nil {
			return "gone"
		}
		return o.String()
	}
	return fmt.Sprintf("%s: kube-controller-manager: %s; weir: %s", d.Name, side(d.Reference), side(d.Weir))
}

// Compare are all objects that differ, sorted by name.
func Compare(reference, weir State) []Difference {
	names := maps.Clone(reference)
	maps.Copy(names, weir)
	var differ []Difference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d := Difference{name, reference.at(name), weir.at(name)}
		if (d.Reference == nil) != (d.Weir == nil) || d.Reference != nil && d.Reference.String() != d.Weir.String() {
			differ = append(differ, d)
		}
	}
	return differ
}

func (s State) names() []string { return slices.Sorted(maps.Keys(s)) }

func (s State) at(name string) *Object {
	o, ok := s[name]
	if !ok {
		return nil
	}
	o = o.sorted()
	return &o
}
