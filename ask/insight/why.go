package insight

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

// Answer says why an object is as it is.
type Answer struct {
	Object   `json:"object"`
	Deleting bool    `json:"deleting"`
	State    string  `json:"state"` // without its subject, the object
	Causes   []Cause `json:"causes"`
	// Try is a command that is offered: see World.Try.
	Try string `json:"-"`
}

// WithFlags appends flags that select the cluster to the commands of the answer.
func (a *Answer) WithFlags(flags string) {
	if a.Try != "" {
		a.Try += flags
	}
	for i := range a.Causes {
		if c := &a.Causes[i]; c.Look != "" {
			c.Look += flags
		}
	}
}

// Facts is what was read besides metadata. Nothing is said about what is nil, because it was not
// read.
type Facts struct {
	// Object is the whole object that is asked about.
	Object *unstructured.Unstructured
	// Pods are those of the namespace of a claim.
	Pods []unstructured.Unstructured
	// NodeGone reports whether the node of a pod does not exist, NamespaceGone whether the
	// namespace does not.
	NodeGone, NamespaceGone *bool
	// Components tells whether the components run that remove finalizers.
	Components *Components
	// Held is the HeldCollection for the object's kind, if the object terminates and carries Weir's
	// finalizer.
	Held *unstructured.Unstructured
	// Events are those of the namespaces in Wants. Any user who may create Events can write one, so
	// they are evidence only.
	Events []corev1.Event
	// Verdict is what policies say about the delete of an object that does not terminate,
	// Enforcement what they say about the deletion of one that does.
	Verdict     *Verdict
	Enforcement *Enforcement
}

// Wants is what has to be read besides metadata to explain an object.
type Wants struct {
	// Finalizers are those on the object and on what it waits for: their components may not run.
	Finalizers []string
	// Namespaces are those in which there may be Events about it; Events of cluster-scoped objects
	// are in default.
	Namespaces []string
}

// mostSpaces bounds the namespaces in which Events are read.
const mostSpaces = 5

// Wants returns what to read for Why.
func (w *World) Wants(uid types.UID, now time.Time) (out Wants) {
	w.settle(uid)
	v, ok := w.Graph.Find(uid)
	if !ok {
		return out
	}
	met := map[string]bool{}
	space := func(name string) {
		if name = cmp.Or(name, metav1.NamespaceDefault); !met[name] && len(out.Namespaces) < mostSpaces {
			met[name] = true
			out.Namespaces = append(out.Namespaces, name)
		}
	}
	space(v.Namespace)
	if !v.Deleting {
		return out
	}
	if v.Kind == namespaces {
		space(v.Name)
	}
	for _, c := range w.explain(now).of(&v) {
		if c.finalizer != "" && !slices.Contains(out.Finalizers, c.finalizer) {
			out.Finalizers = append(out.Finalizers, c.finalizer)
		}
		for _, o := range c.Objects {
			space(o.Namespace)
		}
	}
	return out
}

// Why says why an object exists, or why it still does. It returns false if there is no such object.
func (w *World) Why(uid types.UID, facts Facts, now time.Time) (Answer, bool) {
	w.settle(uid)
	v, ok := w.Graph.Find(uid)
	if !ok {
		return Answer{}, false
	}
	w.Heard(facts.Events, now)
	if facts.Object != nil && v.Kind == namespaces {
		w.HeardOf(facts.Object)
	}
	a := Answer{Object: objectOf(&v), Deleting: v.Deleting}
	if !v.Deleting {
		a.State = "is not being deleted"
		stays := w.stays(&v)
		a.Causes = slices.Concat(stays, w.alsoRefused(uid, stays), facts.refused(), w.recreated(&v))
		return a, true
	}
	a.State = "is being deleted"
	if e := w.ending(&v, now); e.Since != "" {
		a.State += ", for " + e.Since
	}
	a.Causes = w.explain(now).of(&v)
	for i := range a.Causes {
		facts.add(&a.Causes[i], &v)
	}
	// Conditions are about all content that is left, so they are added once.
	if i := slices.IndexFunc(a.Causes, func(c Cause) bool { return c.about == aboutContent }); i >= 0 &&
		facts.Object != nil {
		a.Causes[i].Evidence = append(a.Causes[i].Evidence, conditions(facts.Object)...)
	}
	// Unlisted content comes first: with it, the other causes may not be all.
	a.Causes = slices.Concat(facts.homeless(&v), w.hidden(&v), a.Causes,
		w.alsoRefused(uid, a.Causes), facts.besides(&v))
	return a, true
}

// Try returns a command that tries, as a dry run, a request that has to succeed before the object
// of an answer can go: the delete of what it waits for, or the patch that removes finalizers. It is
// empty if there is none, or it is known who refuses it.
func (w *World) Try(a Answer) string {
	of, ok := w.Graph.Find(a.UID)
	if !ok {
		return ""
	}
	for _, c := range slices.Backward(a.Causes) {
		if c.refused.actor != "" {
			return ""
		}
		if len(c.Objects) > 0 {
			if o, ok := w.Graph.Find(c.Objects[0].UID); ok {
				of = o
			}
		}
	}
	object := words.Object(of.Kind.String(), of.Name)
	if of.Namespace != "" {
		object += " -n " + of.Namespace
	}
	switch {
	case of.Deleting && len(of.Finalizers) > 0:
		return "kubectl patch --dry-run=server " + object + ` --type=merge -p '{"metadata":{"finalizers":null}}'`
	case !of.Deleting && (a.Deleting || w.Graph.Decide(a.UID).Verb == graph.Delete):
		return "kubectl delete --dry-run=server " + object
	}
	return ""
}

// hidden returns a cause for each kind of which a namespace or a definition may have objects that
// cannot be listed, and for each API that does not tell its kinds. That the user may not list a
// kind is no cause.
func (w *World) hidden(v *graph.View) (out []Cause) {
	for _, u := range w.Unread() {
		k, served := w.kinds[schema.ParseGroupResource(u.Kind)]
		of, whole := strings.CutPrefix(u.Kind, allOf)
		in := v.Kind == namespaces && (whole || k.Namespaced) || v.Kind == definitions && u.Kind == v.Name
		if !in || !served && !whole || u.Forbidden {
			continue
		}
		c := Cause{
			What:  fmt.Sprintf("objects of %s cannot be listed, so it is not known whether some are left: %s", of, u.Reason),
			Actor: "whoever runs the API of " + of,
			Look:  "kubectl get " + of + " -A",
		}
		if whole {
			c.Look = "kubectl get apiservices"
		}
		if actor, look := refuser(u.Kind, u.Reason); actor != "" {
			c.Actor, c.Look = actor, look
		}
		out = append(out, c)
	}
	return out
}

// stays returns why an object exists that is not being deleted.
func (w *World) stays(v *graph.View) (out []Cause) {
	a := w.Graph.Decide(v.UID)
	look, astray := treeCommand(v), w.astray(v)
	collects := func(what string, evidence ...string) {
		c := w.acting(v.UID, "the garbage collector")
		c.What, c.Look, c.Evidence = what+a.Why, cmp.Or(c.Look, look), slices.Concat(c.Evidence, astray, evidence)
		out = append(out, c)
	}
	switch {
	case a.Verb == graph.Delete:
		collects("its owners are gone, so it will be deleted: ", w.successors(v)...)
	case a.Verb == graph.Release:
		collects("some of its owners are gone or being deleted, so its references to them will be removed: ")
	case a.Unresolvable != graph.Resolvable:
		out = append(out, Cause{What: "a reference to an owner cannot be resolved, so it is kept: " + a.Why,
			Actor: "whoever wrote the owner reference", Look: look, Evidence: astray})
	case w.keptBecause(v) != "":
		out = append(out, Cause{What: "it was kept when its owners were deleted, and Weir removed its references to them: " +
			w.keptBecause(v), Actor: "whoever may delete it"})
	case len(v.Owners) == 0:
		out = append(out, Cause{What: "nothing owns it: it stays until a user or a controller deletes it"})
	default:
		out = append(out, Cause{What: asLongAs(v) + a.Why, Look: look, Evidence: astray})
	}
	return out
}

// alsoRefused returns a cause if a request about an object is refused or held, and no known cause
// says so.
func (w *World) alsoRefused(uid types.UID, known []Cause) []Cause {
	by, ok := w.refused[uid]
	if !ok || slices.ContainsFunc(known, func(c Cause) bool { return c.refused == by }) {
		return nil
	}
	c := by.cause()
	c.What = "a request of a controller about it is refused, or waits"
	return []Cause{c}
}

// asLongAs says how long an object stays that an owner keeps.
func asLongAs(v *graph.View) string {
	owners, unresolved := map[types.UID]bool{}, false
	for _, o := range v.Owners {
		if owns(o.Verdict) {
			owners[o.UID] = true
		}
		unresolved = unresolved || o.Verdict == "unresolvable"
	}
	switch {
	case unresolved:
		return "it stays even without its owner, because a reference to another owner cannot be resolved: "
	case len(owners) > 1:
		return "it stays as long as one of its owners exists: "
	}
	return "it stays as long as its owner exists: "
}

// successors names objects that have the name of an absent owner, but another uid.
func (w *World) successors(v *graph.View) (out []string) {
	for _, o := range v.Owners {
		if o.Verdict != "absent" {
			continue
		}
		for _, kind := range w.Graph.ServedKind(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)).Resources {
			in := v.Namespace
			if !w.kinds[kind].Namespaced {
				in = ""
			}
			if uid, ok := w.Find(kind, in, o.Name); ok && uid != o.UID {
				out = append(out, fmt.Sprintf("there is %s, with the uid %s; the reference is to one that had the uid %s",
					Object{Kind: kind.String(), Namespace: in, Name: o.Name}, uid, words.Printable(string(o.UID))))
			}
		}
	}
	return out
}

// recreated returns a cause if the controller of an object exists: a deleted object is likely to be
// created again.
func (w *World) recreated(v *graph.View) []Cause {
	for _, o := range v.Owners {
		owner := w.Meta(o.UID)
		if o.Controller != nil && *o.Controller && owns(o.Verdict) && owner != nil && owner.DeletionTimestamp == nil {
			return []Cause{{What: fmt.Sprintf("its controller %s %s lives: if the object is deleted, it is likely to be "+
				"created again", words.Printable(o.Kind), words.Printable(o.Name))}}
		}
	}
	return nil
}

var (
	claims = schema.GroupResource{Resource: "persistentvolumeclaims"}

	// inWords maps conditions that say what a deletion waits for to words.
	inWords = map[string]string{
		"NamespaceDeletionDiscoveryFailure":           "the API server does not tell all kinds that there are",
		"NamespaceDeletionGroupVersionParsingFailure": "a kind has a version that cannot be read",
		"NamespaceDeletionContentFailure":             "some content could not be deleted",
		"NamespaceContentRemaining":                   "content is left",
		"NamespaceFinalizersRemaining":                "content is held by finalizers",
		"Terminating":                                 "the definition waits for its instances",
		"WeirDraining":                                "Weir drains it",
	}
)

const (
	// mostShares is how many shared causes a drawing shows, if one object waits for many, or many
	// refuse.
	mostShares = 5
	// mostActors is how many actors of the other causes it names.
	mostActors = 10
)

// Draw writes an answer.
func (a Answer) Draw(out io.Writer, style Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s.\n", a.Object, a.State)
	told, shares := 0, 0
	var others []string
	for _, c := range a.Causes {
		if c.shared {
			shares++
		}
		if c.shared && shares > mostShares && !style.Full {
			others = append(others, c.Actor)
			continue
		}
		told++
		fmt.Fprintf(&b, "\n%d. %s%s.\n", told, strings.ToUpper(c.What[:1]), c.What[1:])
		if c.Actor != "" {
			fmt.Fprintf(&b, "   Who has to act: %s.\n", c.Actor)
		}
		for _, e := range c.Evidence {
			fmt.Fprintf(&b, "   Evidence: %s.\n", e)
		}
		if c.Look != "" {
			fmt.Fprintf(&b, "   To see more: %s\n", c.Look)
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(&b, "\n… and %s like these, on which others have to act: %s. --full shows them.\n",
			words.Count(len(others), "cause", "causes"), andMore(others[:min(len(others), mostActors)], len(others)))
	}
	if a.Try != "" {
		fmt.Fprintf(&b, "\nWhether a webhook refuses what has to succeed first is not known. To try "+
			"that, without effect: %s\n", a.Try)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
