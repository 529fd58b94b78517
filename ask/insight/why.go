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
	// Tried are the requests that were tried as a dry run, if that was asked for.
	Tried []Trial `json:"tried,omitempty"`
	// Try is a command that would try requests; empty if there are none, or they were tried.
	Try string `json:"-"`
}

// Offer sets Try, if there are trials and it is not known yet who refuses one.
func (a *Answer) Offer(trials []Trial) {
	if len(trials) == 0 || slices.ContainsFunc(a.Causes, func(c Cause) bool { return c.refused.actor != "" }) {
		return
	}
	in := ""
	if a.Namespace != "" {
		in = " -n " + a.Namespace
	}
	a.Try = fmt.Sprintf("kubectl weir why%s %s --try", in, words.Object(a.Kind, a.Name))
}

// Take adds trials that were made, and a cause for each request that was refused.
func (a *Answer) Take(tried []Trial) {
	a.Tried = append(a.Tried, tried...)
	for i := range tried {
		if c, ok := tried[i].Cause(); ok {
			a.Causes = append(a.Causes, c)
		}
	}
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
	// Pods are those of its namespace; for a volume, those of its claim's namespace.
	Pods []unstructured.Unstructured
	// Attachments are the VolumeAttachments of a volume.
	Attachments []unstructured.Unstructured
	// NodeGone reports whether the node of a pod does not exist, NamespaceGone whether the namespace
	// does not.
	NodeGone, NamespaceGone *bool
	// Components tells whether the components run that remove finalizers.
	Components *Components
	// APIServices maps the names of APIServices that are not available to the reasons.
	APIServices map[string]string
	// Held is the HeldCollection for the object's kind, if the object terminates and carries Weir's
	// finalizer.
	Held *unstructured.Unstructured
	// Events are those of the namespaces in Wants. Any user who may create Events can write one, so
	// they are evidence only.
	Events []corev1.Event
	// Verdict is what policies say about the delete of an object that does not terminate, Enforcement
	// what they say about the deletion of one that does.
	Verdict     *Verdict
	Enforcement *Enforcement
}

// Wants is what has to be read besides metadata to explain an object.
type Wants struct {
	// Finalizers are those on the object and on what it waits for: their components may not run.
	Finalizers []string
	// Namespaces are those in which there may be Events about it; Events of cluster-scoped objects are
	// in default.
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
	w.Heard(facts.Events)
	if facts.Object != nil && v.Kind == namespaces {
		w.HeardOf(facts.Object)
	}
	a := Answer{Object: objectOf(&v), Deleting: v.Deleting}
	if !v.Deleting {
		a.State = "is not being deleted"
		causes := append([]Cause{{uids: []types.UID{uid}}}, w.stays(&v)...)
		told := facts.told(causes, &v, now)
		if isUndeletable(&v) {
			if len(v.Owners) == 0 {
				causes = causes[:1] // no user and no controller deletes it
			}
			causes = append(causes, Cause{What: theAPIServer + " refuses its delete, whoever asks: " + nobodyMay})
		} else {
			causes = append(causes, facts.refused()...)
		}
		a.Causes = append(causes[1:], told...)
		a.Causes = append(a.Causes, w.recreated(&v)...)
		return a, true
	}
	a.State = "is being deleted"
	if e := w.ending(&v, now); e.Since != "" {
		a.State += ", for " + e.Since
	}
	a.Causes = w.explain(now).of(&v)
	for i := range a.Causes {
		facts.add(&a.Causes[i], &v, now)
	}
	// Conditions are about all content that is left, so they are added once.
	if i := slices.IndexFunc(a.Causes, func(c Cause) bool { return c.about == aboutContent }); i >= 0 &&
		facts.Object != nil {
		a.Causes[i].Evidence = append(a.Causes[i].Evidence, conditions(facts.Object)...)
	}
	causes := append([]Cause{{uids: []types.UID{uid}}}, a.Causes...)
	told := facts.told(causes, &v, now)
	// Unlisted content comes first: with it, the other causes may not be all.
	a.Causes = slices.Concat(facts.homeless(&v, causes), w.hidden(&v), facts.unavailable(), causes[1:], told,
		facts.besides(&v))
	return a, true
}

// hidden returns a cause for each kind of which a namespace or a definition may have objects that
// cannot be listed. That the user may not list a kind is no cause.
func (w *World) hidden(v *graph.View) (out []Cause) {
	for _, u := range w.Unread() {
		kind := schema.ParseGroupResource(u.Kind)
		k, served := w.kinds[kind]
		in := v.Kind == namespaces && k.Namespaced || v.Kind == definitions && u.Kind == v.Name
		if !in || !served || u.Forbidden {
			continue
		}
		c := Cause{
			What:  fmt.Sprintf("objects of %s cannot be listed, so it is not known whether some are left: %s", u.Kind, u.Reason),
			Actor: "whoever runs the API of " + u.Kind,
			Look:  "kubectl get " + u.Kind + " -A",
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
	look, mismatched := treeCommand(v), w.mismatched(v)
	collects := func(what string, evidence ...string) {
		c := w.acting(v.UID, "the garbage collector")
		c.What, c.Look, c.Evidence = what+a.Why, cmp.Or(c.refused.look, look), evidence
		out = append(out, c)
	}
	switch {
	case a.Verb == graph.Delete && mismatched != "":
		collects("no owner that it names is in its namespace, so it will be deleted: ")
	case a.Verb == graph.Delete:
		collects("its owners are gone, so it will be deleted: ", w.successors(v)...)
	case a.Verb == graph.Release:
		collects("some of its owners are gone or being deleted, so its references to them will be removed: ")
	case a.Unresolvable != graph.Resolvable:
		out = append(out, Cause{What: "a reference to an owner cannot be resolved, so it is kept: " + a.Why,
			Actor: "whoever wrote the owner reference", Look: look, Evidence: w.misnamed(v)})
	case w.keptBecause(v) != "":
		out = append(out, Cause{What: "it was kept when its owners were deleted, and Weir removed its references to them: " +
			w.keptBecause(v), Actor: "whoever may delete it"})
	case len(v.Owners) == 0:
		out = append(out, Cause{What: "nothing owns it: it stays until a user or a controller deletes it"})
	default:
		out = append(out, Cause{What: w.asLongAs(v.UID) + a.Why, Look: look, Evidence: w.misnamed(v)})
	}
	if mismatched != "" {
		where := "owners are looked for in its own only"
		if v.Namespace == "" {
			where = "a cluster-scoped object cannot have such an owner"
		}
		out = append(out, Cause{
			What:  fmt.Sprintf("an owner that it names is in the namespace %q; %s", mismatched, where),
			Actor: "whoever wrote the owner reference",
		})
	}
	return out
}

// asLongAs says how long an object stays that an owner keeps.
func (w *World) asLongAs(uid types.UID) string {
	v, _ := w.Graph.Find(uid)
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
	claims  = schema.GroupResource{Resource: "persistentvolumeclaims"}
	storage = schema.GroupResource{Resource: "persistentvolumes"}

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
		fmt.Fprintf(&b, "\n%d. %s.\n", told, capital(c.What))
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
	if len(a.Tried) > 0 {
		b.WriteString("\nTried, as a dry run:\n")
	}
	for i := range a.Tried {
		fmt.Fprintf(&b, "  %s\n", a.Tried[i].told())
	}
	if a.Try != "" {
		fmt.Fprintf(&b, "\nWhether a webhook refuses what has to succeed first is not known. To try "+
			"that, as a dry run: %s\n", a.Try)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
