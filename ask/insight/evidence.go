package insight

import (
	"fmt"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// add adds to a cause what the whole object and others tell about it.
func (f Facts) add(c *Cause, v *graph.View) {
	if c.finalizer != "" {
		c.Evidence = append(c.Evidence, f.Components.evidence(c.finalizer, c.manager)...)
	}
	if c.finalizer == v1beta1.Finalizer && f.Held != nil {
		f.held(c, v)
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
	case c.about == aboutStopping && f.NodeGone != nil && *f.NodeGone:
		c.Evidence = append(c.Evidence, "the node that it runs on is not there any more: nothing will confirm "+
			"that the pod has stopped")
		c.Actor = "kube-controller-manager (pod garbage collection), or you: kubectl delete pod --force"
	}
}

// held makes a person the actor of a cause, if a brake holds the deletion. A HeldCollection names
// only some of what it holds.
func (f Facts) held(c *Cause, v *graph.View) {
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
	c.Actor, c.Look = "a person who decides", "kubectl get held "+words.Shell(h.Name)+" -o wide"
	if named >= 0 {
		c.What += ", which waits until a person decides: " +
			words.Printable(h.Status.Samples[named].Why)
	} else {
		c.What += fmt.Sprintf(", which may wait until a person decides: %d "+
			"deletions of %s are held", h.Status.Held, v.Kind)
	}
}

// used adds which pods use a claim.
func (f Facts) used(c *Cause, claim string) {
	if users := usersOf(f.Pods, claim); len(users) > 0 {
		c.Evidence = append(c.Evidence, "pods that use the claim: "+SomeOf(users))
		c.Actor = "whoever runs " + users[0]
	}
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

// homeless returns the cause that the namespace of an object does not exist.
func (f Facts) homeless(v *graph.View) []Cause {
	if f.NamespaceGone == nil || !*f.NamespaceGone {
		return nil
	}
	return []Cause{{
		What:  fmt.Sprintf("its namespace %s does not exist, so the API server accepts no request about it", v.Namespace),
		Actor: fmt.Sprintf(whoMakesNamespaces, v.Namespace),
	}}
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

// failures returns the messages of the condition that content could not be deleted.
func failures(u *unstructured.Unstructured) (out []string) {
	for kind, message := range holding(u) {
		if kind == "NamespaceDeletionContentFailure" {
			out = append(out, message)
		}
	}
	return out
}

// conditions describes the conditions of a status that say what a deletion waits for.
func conditions(u *unstructured.Unstructured) (out []string) {
	for kind, message := range holding(u) {
		if said := inWords[kind]; said != "" {
			out = append(out, fmt.Sprintf("condition %s: %s: %s", kind, said, message))
		}
	}
	return out
}

// holding yields the types and messages of the conditions of a status that are True.
func holding(u *unstructured.Unstructured) iter.Seq2[string, string] {
	return func(yield func(kind, message string) bool) {
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, one := range list {
			c, _ := one.(map[string]any)
			kind, _ := c["type"].(string)
			message, _ := c["message"].(string)
			if c["status"] == "True" && !yield(kind, words.Printable(message)) {
				return
			}
		}
	}
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
