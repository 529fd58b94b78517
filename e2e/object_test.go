package e2e

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// object is one that a test made: who it is for good, whatever becomes of it.
type object struct {
	kind
	namespace, name string
	uid             types.UID
}

// reference is how a dependent names the object as its owner.
func (o object) reference() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: o.GroupVersion().String(), Kind: o.Kind, Name: o.name, UID: o.uid,
	}
}

// line is an object as it is written.
type line struct {
	kind, name         string
	owners, finalizers []string
}

// readLine takes apart KIND NAME [owners=(…)] [finalizers=(…)].
func readLine(text string) (line, error) {
	var l line
	text = strings.TrimSpace(text)
	for _, list := range []struct {
		key string
		to  *[]string
	}{{" owners=(", &l.owners}, {" finalizers=(", &l.finalizers}} {
		before, after, found := strings.Cut(text, list.key)
		if !found {
			continue
		}
		words, rest, closed := strings.Cut(after, ")")
		if !closed {
			return l, fmt.Errorf("object %q: no closing parenthesis", text)
		}
		for w := range strings.SplitSeq(words, ",") {
			*list.to = append(*list.to, strings.TrimSpace(w))
		}
		text = before + rest
	}
	words := strings.Fields(text)
	if len(words) != 2 {
		return l, fmt.Errorf("object %q: want a kind and a name", text)
	}
	l.kind, l.name = words[0], words[1]
	return l, nil
}

// manifest is an object that is to be made.
func (k kind) manifest(name string, owners []metav1.OwnerReference, finalizers []string) (*unstructured.Unstructured, error) {
	body := k.body
	if strings.Contains(body, "%[1]s") {
		body = fmt.Sprintf(body, name)
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(body), &o.Object); err != nil {
		return nil, fmt.Errorf("read what a %s needs: %w", k.Kind, err)
	}
	if o.Object == nil {
		o.Object = map[string]any{}
	}
	o.SetGroupVersionKind(k.GroupVersionKind)
	o.SetName(name)
	o.SetFinalizers(finalizers)
	o.SetOwnerReferences(owners)
	return o, nil
}

// marks are what may follow the name of an owner.
var marks = []struct {
	word string
	set  func(*metav1.OwnerReference)
	is   func(metav1.OwnerReference) bool
}{
	{"!block", func(r *metav1.OwnerReference) { r.BlockOwnerDeletion = new(true) },
		func(r metav1.OwnerReference) bool { return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion }},
	{"!unblock", func(r *metav1.OwnerReference) { r.BlockOwnerDeletion = new(false) },
		func(r metav1.OwnerReference) bool { return r.BlockOwnerDeletion != nil && !*r.BlockOwnerDeletion }},
	{"*controller", func(r *metav1.OwnerReference) { r.Controller = new(true) },
		func(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller }},
}

// cutMarks takes the marks off the end of a word, and returns what sets them.
func cutMarks(word string) (string, func(*metav1.OwnerReference)) {
	set := func(*metav1.OwnerReference) {}
	for _, m := range slices.Backward(marks) {
		if rest, ok := strings.CutSuffix(word, m.word); ok {
			before := set
			word, set = rest, func(r *metav1.OwnerReference) { before(r); m.set(r) }
		}
	}
	return word, set
}

// ownersText writes references as they are written in owners=(…): by the name in
// them.
func ownersText(refs []metav1.OwnerReference) string {
	var words []string
	for _, r := range refs {
		w := r.Name
		for _, m := range marks {
			if m.is(r) {
				w += m.word
			}
		}
		words = append(words, w)
	}
	return strings.Join(words, ", ")
}
