package insight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// add adds to a cause what the whole object and others tell about it.
func (f Facts) add(c *Cause, v *graph.View, now time.Time) {
	if c.finalizer != "" {
		c.Evidence = append(c.Evidence, f.Components.evidence(c.finalizer, c.manager)...)
	}
	if c.finalizer == v1beta1.Finalizer && f.Held != nil {
		f.held(c, v, now)
	}
	if e := f.Enforcement; c.finalizer == v1beta1.Finalizer && e != nil {
		if e.By != "" {
			c.Evidence = append(c.Evidence, fmt.Sprintf("policy %s: %s", e.By, e.Propagation))
		}
		if e.Archive != "" {
			c.Evidence = append(c.Evidence, "policy "+e.Archive+" has it recorded before it goes: kubectl weir deleted")
		}
	}
	switch {
	case v.Kind == claims && c.finalizer == "kubernetes.io/pvc-protection":
		f.used(c, v.Name)
	case v.Kind == storage && c.finalizer == "kubernetes.io/pv-protection":
		f.bound(c)
	case v.Kind == storage && strings.HasPrefix(c.finalizer, "external-attacher/"):
		for i := range f.Attachments {
			node, _, _ := unstructured.NestedString(f.Attachments[i].Object, "spec", "nodeName")
			c.Evidence = append(c.Evidence, fmt.Sprintf("volumeattachments/%s attaches it to the node %s",
				f.Attachments[i].GetName(), words.Printable(node)))
		}
	case c.about == aboutStopping && f.NodeGone != nil && *f.NodeGone:
		c.Evidence = append(c.Evidence, "the node that it runs on is not there any more: nothing will confirm "+
			"that the pod has stopped")
		c.Actor = "kube-controller-manager (pod garbage collection), or you: kubectl delete pod --force"
	}
}

// held makes a person the actor of a cause, if a brake holds the deletion. A HeldCollection names
// only some of what it holds.
func (f Facts) held(c *Cause, v *graph.View, now time.Time) {
	var h v1beta1.HeldCollection
	if runtime.DefaultUnstructuredConverter.FromUnstructured(f.Held.Object, &h) != nil || h.Status.Held == 0 {
		return
	}
	named := slices.IndexFunc(h.Status.Samples, func(s v1beta1.HeldSample) bool {
		return s.Group == v.Kind.Group && s.Resource == v.Kind.Resource && s.Namespace == v.Namespace && s.Name == v.Name
	})
	if named < 0 && int(h.Status.Held) <= len(h.Status.Samples) {
		return // all are named
	}
	c.braked, c.Actor, c.Look = true, "a person who decides", "kubectl get held "+words.Shell(h.Name)+" -o wide"
	if named >= 0 {
		c.What += ", which waits until a person decides: " +
			words.Printable(h.Status.Samples[named].Why)
	} else {
		c.What += fmt.Sprintf(", which may wait until a person decides: %d "+
			"deletions of %s are held", h.Status.Held, v.Kind)
	}
	for _, s := range saidOf(f.Events, map[types.UID]bool{v.UID: true}, v) {
		if s.uid == v.UID && s.reason == v1beta1.ReasonDeletionHeld {
			c.Evidence = append(c.Evidence, s.evidence(now)+": "+s.message)
			return
		}
	}
}

// used adds which pods use a claim.
func (f Facts) used(c *Cause, claim string) {
	if users := usersOf(f.Pods, claim); len(users) > 0 {
		c.Evidence = append(c.Evidence, "pods that use the claim: "+someOf(users))
		c.Actor = "whoever runs " + users[0]
	}
}

// bound adds to which claim a volume is bound, and which pods use that.
func (f Facts) bound(c *Cause) {
	if f.Object == nil {
		return
	}
	name, _, _ := unstructured.NestedString(f.Object.Object, "spec", "claimRef", "name")
	in, _, _ := unstructured.NestedString(f.Object.Object, "spec", "claimRef", "namespace")
	if phase, _, _ := unstructured.NestedString(f.Object.Object, "status", "phase"); name == "" || phase != "Bound" {
		return
	}
	claim := Object{Kind: claims.String(), Namespace: in, Name: name}
	c.Evidence = append(c.Evidence, "it is bound to "+claim.String())
	c.Actor, c.Look = "whoever deletes "+claim.String(), fmt.Sprintf("kubectl weir why -n %s persistentvolumeclaim %s",
		words.Shell(in), words.Shell(name))
	f.used(c, name)
}

// refused returns a cause if a policy refuses the delete of an object that is not being deleted.
func (f Facts) refused() []Cause {
	if f.Verdict == nil || !f.Verdict.Refused {
		return nil
	}
	c := Cause{What: "a policy refuses to have you delete it: " + f.Verdict.Message, Actor: "whoever the message names",
		Look: f.Verdict.Confirm}
	if c.Look != "" {
		c.Actor = "you, by a confirmation"
	}
	return []Cause{c}
}

// told returns a cause for each actor that refused Weir's controller, as Events about the objects
// of causes tell. Events about a known cause become its evidence.
func (f Facts) told(causes []Cause, v *graph.View, now time.Time) (out []Cause) {
	about, braked := map[types.UID]bool{}, false
	for i := range causes {
		braked = braked || causes[i].braked
		for _, uid := range causes[i].uids {
			about[uid] = true
		}
	}
	met := map[string]bool{}
	by := func(actor string) int {
		return slices.IndexFunc(causes, func(c Cause) bool { return actor != "" && c.refused.actor == actor })
	}
	add := func(what, actor, look, evidence string) {
		if met[actor] {
			return
		}
		met[actor] = true
		if at := by(actor); at >= 0 {
			causes[at].Evidence = append(causes[at].Evidence, what+" ("+evidence+")") // the cause is known
			return
		}
		out = append(out, Cause{What: what, Actor: actor, Look: look, Evidence: []string{evidence}, shared: true})
	}
	for _, s := range saidOf(f.Events, about, v) {
		evidence := s.evidence(now)
		if s.reason == v1beta1.ReasonDeletionHeld {
			if !braked || s.uid != v.UID { // else held has added it
				add(fmt.Sprintf("Weir's controller waits at %s: %s", s.object, s.message), "", "", evidence)
			}
			continue
		}
		actor, look := refuser("", s.message)
		add(fmt.Sprintf("Weir's controller is refused at %s: %s", s.object, s.message), cmp.Or(actor, unnamed),
			look, evidence)
	}
	if f.Object != nil && v.Kind == namespaces {
		for _, text := range failures(f.Object) {
			if actor, look := refuser("", text); actor != "" && by(actor) < 0 { // else the conditions are evidence already
				add("the API server refuses what the namespace controller asks for: "+text, actor, look,
					"the condition NamespaceDeletionContentFailure")
			}
		}
	}
	return out
}

// homeless returns the cause that the namespace of an object does not exist, unless it is among
// known.
func (f Facts) homeless(v *graph.View, known []Cause) []Cause {
	c := noHome(v.Namespace)
	same := func(k Cause) bool { return k.What == c.What }
	if f.NamespaceGone == nil || !*f.NamespaceGone || slices.ContainsFunc(known, same) {
		return nil
	}
	return []Cause{c}
}

func noHome(namespace string) Cause {
	return Cause{
		What:  fmt.Sprintf("its namespace %s does not exist, so the API server accepts no request about it", namespace),
		Actor: fmt.Sprintf(whoMakesNamespaces, namespace),
	}
}

// besides returns a cause for each foreign finalizer in the spec of a namespace.
func (f Facts) besides(v *graph.View) (out []Cause) {
	if v.Kind != namespaces {
		return nil
	}
	if f.Object != nil {
		list, _, _ := unstructured.NestedStringSlice(f.Object.Object, "spec", "finalizers")
		for _, name := range list {
			if name != string(corev1.FinalizerKubernetes) {
				out = append(out, Cause{What: fmt.Sprintf("the finalizer %s in its spec.finalizers holds it",
					words.Printable(name)), Actor: actorOf(name), Look: "kubectl get namespace " + v.Name + " -o yaml"})
			}
		}
	}
	return out
}

// unavailable returns a cause for each APIService that is not available, so that the namespace may
// have unlisted objects of it.
func (f Facts) unavailable() (out []Cause) {
	for _, name := range slices.Sorted(maps.Keys(f.APIServices)) {
		out = append(out, Cause{
			What: fmt.Sprintf("the APIService %s is not available, so it is not known whether the namespace holds "+
				"objects of it: %s", name, words.Printable(f.APIServices[name])),
			Actor: "whoever runs the API behind the APIService " + name,
			Look:  "kubectl describe apiservice " + name,
		})
	}
	return out
}

// failures returns the messages of the condition that content could not be deleted.
func failures(u *unstructured.Unstructured) (out []string) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, one := range list {
		if c, _ := one.(map[string]any); c["type"] == "NamespaceDeletionContentFailure" && c["status"] == "True" {
			out = append(out, words.Printable(fmt.Sprint(c["message"])))
		}
	}
	return out
}

// conditions describes the conditions of a status that say what a deletion waits for.
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

// usersOf returns the pods that use a claim.
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
