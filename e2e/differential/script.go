package differential

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A World is a script: what users do to some objects, whatever becomes of them meanwhile. An
// operation on an object that is gone does nothing.
type World struct {
	Seed   uint64
	Number int
	Script []Operation
}

// A Verb is what an operation does.
type Verb string

// The verbs.
const (
	Create     Verb = "create"     // an object, with references and finalizers
	Delete     Verb = "delete"     // with a propagation
	Own        Verb = "own"        // replace the references
	Adopt      Verb = "adopt"      // add references
	Disown     Verb = "disown"     // take off the references to one owner
	Block      Verb = "block"      // set blockOwnerDeletion in the references to one owner
	Unblock    Verb = "unblock"    // and clear it
	Finalize   Verb = "finalize"   // put a finalizer on
	Unfinalize Verb = "unfinalize" // and take it off
	Touch      Verb = "touch"      // change an annotation, as heartbeats do
)

// An Operation is one line of a script.
type Operation struct {
	Verb   Verb
	Object string

	Namespace string // create: "a" or "b", empty for a cluster-scoped kind
	As        string // create: under the name of this earlier object
	Owners    []Reference
	Finalizer string
	Owner     string // disown, block, unblock
	Policy    metav1.DeletionPropagation
}

func (o Operation) String() string {
	words := []string{string(o.Verb), o.Object}
	if o.Namespace != "" {
		words = append(words, "in", o.Namespace)
	}
	if o.As != "" {
		words = append(words, "as", o.As)
	}
	if o.Verb == Own || len(o.Owners) > 0 {
		words = append(words, "owners=("+texts(o.Owners)+")")
	}
	for _, word := range []string{o.Finalizer, o.Owner, strings.ToLower(string(o.Policy))} {
		if word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// A Flaw is what is wrong with a reference beside its uid.
type Flaw string

// The flaws. That an owner is gone, or in another namespace, is none: it follows from the world.
const (
	Sound        Flaw = ""
	Misnamed     Flaw = "~name"     // no object has that name
	Mistyped     Flaw = "~kind"     // of another kind, which is served
	OtherVersion Flaw = "~version"  // of another served version, which is no mistake
	Unserved     Flaw = "~unserved" // of a version that is not served
)

// A Reference is an owner reference by logical name. An owner that no operation creates never
// existed.
type Reference struct {
	Owner string
	Flaw  Flaw
	Block Mark
}

// A Mark is a value of blockOwnerDeletion.
type Mark string

// The marks.
const (
	Unset    Mark = ""
	Blocking Mark = "!block"
	Free     Mark = "!free"
)

func (m Mark) value() *bool {
	if m == Unset {
		return nil
	}
	return new(m == Blocking)
}

func markOf(value *bool) Mark {
	switch {
	case value == nil:
		return Unset
	case *value:
		return Blocking
	}
	return Free
}

func (r Reference) String() string { return r.Owner + string(r.Flaw) + string(r.Block) }

func texts(refs []Reference) string {
	var words []string
	for _, r := range refs {
		words = append(words, r.String())
	}
	return strings.Join(words, ", ")
}

// Text is the script, a line each up to and including the step.
func (w World) Text(step int) string {
	var b strings.Builder
	for i, o := range w.Script[:min(step+1, len(w.Script))] {
		fmt.Fprintf(&b, "  %2d %s\n", i, o)
	}
	return b.String()
}
