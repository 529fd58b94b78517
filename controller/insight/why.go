package insight

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

// Answer is why an object is as it is.
type Answer struct {
	Object   `json:"object"`
	Deleting bool    `json:"deleting"`
	State    string  `json:"state"` // in a sentence
	Causes   []Cause `json:"causes"`
	// Tried are requests that were tried without effect; none if nobody asked for that.
	Tried []Trial `json:"tried,omitempty"`
}

// Take adds what was tried, with a cause for each request that is refused.
func (a *Answer) Take(tried []Trial) {
	a.Tried = append(a.Tried, tried...)
	for i := range tried {
		if c, ok := tried[i].Cause(); ok {
			a.Causes = append(a.Causes, c)
		}
	}
}

// Facts are what was read besides metadata. Whatever is nil was not read, and nothing is said about it.
type Facts struct {
	// Object is the whole object that is asked about.
	Object *unstructured.Unstructured
	// Pods are those of its namespace.
	Pods []unstructured.Unstructured
	// NodeGone says that the node of a pod is not there.
	NodeGone *bool
	// Components tell whether who is to take finalizers off runs.
	Components *Components
	// APIServices are those that are not available, by name, and why.
	APIServices map[string]string
}

// Why says why an object is there, or why it is still there. False if there is none.
func (w *World) Why(uid types.UID, facts Facts, now time.Time) (Answer, bool) {
	w.settle(uid)
	v, ok := w.Graph.Find(uid)
	if !ok {
		return Answer{}, false
	}
	a := Answer{Object: objectOf(&v), Deleting: v.Deleting}
	if !v.Deleting {
		a.State = "is not being deleted"
		a.Causes = w.stays(&v, now)
		return a, true
	}
	a.State = "is being deleted"
	if e := w.ending(&v, now); e.Since != "" {
		a.State += ", for " + e.Since
	}
	a.Causes = w.waits(&v, now)
	for i := range a.Causes {
		facts.add(&a.Causes[i], &v, now)
	}
	a.Causes = append(a.Causes, facts.besides(&v)...)
	a.Causes = append(a.Causes, w.hidden(&v)...)
	return a, true
}

// hidden are kinds of which a namespace or a definition may have objects that cannot be listed. That you may not list them is
// no cause.
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
			Actor: "who runs the API of " + u.Kind,
			Look:  "kubectl get " + u.Kind + " -A",
		}
		if actor, look := refuser(u.Kind, u.Reason); actor != "" {
			c.Actor, c.Look = actor, look
		}
		out = append(out, c)
	}
	return out
}

// stays are the causes for which an object that nobody deletes is there.
func (w *World) stays(v *graph.View, now time.Time) (out []Cause) {
	a := w.Graph.Decide(v.UID)
	look := command("tree", v)
	switch {
	case a.Verb == graph.Delete:
		out = append(out, Cause{What: "its owners are gone, and it is to be deleted: " + a.Why, Actor: "the garbage collector", Look: look})
	case a.Verb == graph.Release:
		out = append(out, Cause{What: "some of its owners are gone or going, and the references to them come off: " + a.Why, Actor: "the garbage collector", Look: look})
	case a.Trouble != graph.NoTrouble:
		out = append(out, Cause{What: "a reference to an owner cannot be resolved, so it is kept: " + a.Why, Actor: "who wrote the owner reference", Look: look})
	case len(v.Owners) == 0:
		out = append(out, Cause{What: "nothing owns it: it stays until a user or a controller deletes it"})
	default:
		out = append(out, Cause{What: "it stays as long as its owner: " + a.Why, Look: look})
	}
	if a.Stray != nil {
		in := w.Graph.Owner(*a.Stray, v.Namespace)
		out = append(out, Cause{
			What:  fmt.Sprintf("the owner that it names lives in the namespace %q; owners are looked for in its own only", in.Namespace),
			Actor: "who wrote the owner reference",
		})
	}
	return append(out, w.anew(v, now)...)
}

// anew tells of an object that is younger than the controller that makes it: deleting it brings it back.
func (w *World) anew(v *graph.View, now time.Time) []Cause {
	for _, o := range v.Owners {
		owner, m := w.meta[o.UID], w.meta[v.UID]
		if o.Controller == nil || !*o.Controller || owner == nil || m == nil || owner.DeletionTimestamp != nil {
			continue
		}
		c := Cause{What: fmt.Sprintf("its controller %s %s lives: if the object is deleted, it is likely to be created again", words.Printable(o.Kind), words.Printable(o.Name))}
		if m.CreationTimestamp.Sub(owner.CreationTimestamp.Time) > time.Minute {
			c.Evidence = []string{fmt.Sprintf("it was made %s ago, and its controller %s ago: it may be the successor of one that was deleted",
				duration.HumanDuration(now.Sub(m.CreationTimestamp.Time)), duration.HumanDuration(now.Sub(owner.CreationTimestamp.Time)))}
		}
		return []Cause{c}
	}
	return nil
}

var (
	claims = schema.GroupResource{Resource: "persistentvolumeclaims"}
	// inWords are the conditions that say what a deletion waits for.
	inWords = map[string]string{
		"NamespaceDeletionDiscoveryFailure":           "the API server does not tell all kinds that there are",
		"NamespaceDeletionGroupVersionParsingFailure": "a kind has a version that cannot be read",
		"NamespaceDeletionContentFailure":             "some content could not be deleted",
		"NamespaceContentRemaining":                   "content is left",
		"NamespaceFinalizersRemaining":                "content is held by finalizers",
		"Terminating":                                 "the definition waits for its instances",
	}
)

// add puts to a cause what the whole object, and others, tell about it.
func (f Facts) add(c *Cause, v *graph.View, now time.Time) {
	if c.finalizer != "" {
		c.Evidence = append(c.Evidence, f.Components.evidence(c.finalizer, c.manager, now)...)
	}
	if f.Object != nil && (v.Kind == namespaces || v.Kind == definitions) {
		c.Evidence = append(c.Evidence, conditions(f.Object)...)
	}
	if v.Kind == claims && strings.Contains(c.What, "kubernetes.io/pvc-protection") {
		if users := usersOf(f.Pods, v.Name); len(users) > 0 {
			c.Evidence = append(c.Evidence, "pods that use the claim: "+strings.Join(users, ", "))
			c.Actor = "who runs " + users[0]
		}
	}
	if v.Kind == pods && f.NodeGone != nil && *f.NodeGone {
		c.Evidence = append(c.Evidence, "the node that it runs on is not there any more: nothing will confirm that the pod has stopped")
		c.Actor = "kube-controller-manager (pod garbage collection), or you: kubectl delete pod --force"
	}
}

// besides are causes of their own.
func (f Facts) besides(v *graph.View) (out []Cause) {
	if v.Kind != namespaces {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(f.APIServices)) {
		out = append(out, Cause{
			What:  fmt.Sprintf("the APIService %s is not available, so it is not known whether the namespace holds objects of it: %s", name, words.Printable(f.APIServices[name])),
			Actor: "who runs the API behind the APIService " + name,
			Look:  "kubectl describe apiservice " + name,
		})
	}
	return out
}

// conditions are those of a status that say that something is wrong, in words.
func conditions(u *unstructured.Unstructured) (out []string) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, one := range list {
		c, _ := one.(map[string]any)
		kind, _ := c["type"].(string)
		said := inWords[kind]
		if status, _ := c["status"].(string); said == "" || status != "True" {
			continue
		}
		message, _ := c["message"].(string)
		out = append(out, fmt.Sprintf("condition %s: %s: %s", kind, said, words.Printable(message)))
	}
	return out
}

// usersOf are the pods that use a claim.
func usersOf(all []unstructured.Unstructured, claim string) (out []string) {
	for i := range all {
		volumes, _, _ := unstructured.NestedSlice(all[i].Object, "spec", "volumes")
		for _, one := range volumes {
			volume, _ := one.(map[string]any)
			if name, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName"); name == claim {
				out = append(out, "pods/"+all[i].GetName())
				break
			}
		}
	}
	return out
}

// Draw writes an answer.
func (a Answer) Draw(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s.\n", a.Object, a.State)
	for n, c := range a.Causes {
		fmt.Fprintf(&b, "\n%d. %s.\n", n+1, capital(c.What))
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
	if len(a.Tried) > 0 {
		b.WriteString("\nTried without effect:\n")
	}
	for i := range a.Tried {
		fmt.Fprintf(&b, "  %s\n", a.Tried[i].told())
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
