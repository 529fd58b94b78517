//go:build full

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// holds is a finalizer that only the test takes off.
const holds = "example.com/hold"

var definitionKind = kind{GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	resource: "customresourcedefinitions", cluster: true}

// apart is a predictor of what is elsewhere, with policies of its own: what it makes is not asked
// about when all is settled around it.
func (p *predictor) apart() *predictor {
	p.Helper()
	other := *p.beside()
	other.made, other.kinds = map[string]object{}, maps.Clone(p.kinds)
	q := &predictor{fixture: &other, random: p.random, around: p.fixture}
	q.policies()
	return q
}

// deleteNamespace deletes one in which objects own each other, and one of them is held.
func (p *predictor) deleteNamespace() {
	p.Helper()
	q := p.apart()
	names, _ := q.graph("in")
	q.make("cm held finalizers=(" + holds + ")\npo pod\nsec below-held owners=(held)\nsec above\ncm both owners=(held, above!block)")
	names = append(names, "held", "pod", "below-held", "above", "both")
	q.settle()
	found, err := q.typed.CoreV1().Namespaces().Get(q.Context(), q.namespace, metav1.GetOptions{})
	if err != nil {
		q.Fatal(err)
	}
	q.deleteRoot(object{kind: usual["ns"], name: q.namespace, uid: found.UID}, names, "held")
	p.sum.add(q.sum)
}

// deleteDefinition deletes one with instances in two namespaces, of which some own objects, and one
// is held.
func (p *predictor) deleteDefinition() {
	p.Helper()
	q := p.apart()
	crd := q.definition("Gadget", apiextensionsv1.NamespaceScoped, "v1")
	q.define(crd)
	elsewhere := q.beside()
	elsewhere.make("gadget far\ncm of-far owners=(far)")
	q.make(`
		gadget near
		gadget held      finalizers=(` + holds + `)
		gadget owned     owners=(near!block)
		sec    of-near   owners=(near!block)
		cm     of-held   owners=(held)
		cm     below     owners=(of-near)
		sec    other
		cm     of-both   owners=(near, other)
	`)
	names := []string{"far", "of-far", "near", "held", "owned", "of-near", "of-held", "below", "other", "of-both"}
	q.settle()
	found, err := q.crds().Get(q.Context(), crd.Name, metav1.GetOptions{})
	if err != nil {
		q.Fatal(err)
	}
	q.deleteRoot(object{kind: definitionKind, name: crd.Name, uid: found.UID}, names, "held")
	p.sum.add(q.sum)
}

// deleteRoot plans the delete of what takes along more than its dependents, and deletes it; then
// the finalizer comes off that holds one object.
func (p *predictor) deleteRoot(root object, names []string, held string) {
	p.Helper()
	policy := []metav1.DeletionPropagation{background, foreground, orphan}[p.random.IntN(3)]
	var plan foretold
	text := p.mustAsk("plan", root.resource, root.name, "--cascade", strings.ToLower(string(policy)), "-o", "json")
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		p.Fatal(err)
	}
	p.made[root.name] = root
	names = append(names, root.name)
	before := p.describe(names)
	p.sum.deletes++
	if err := p.at(root).Delete(p.Context(), root.name, metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &root.uid}}); err != nil {
		p.Fatal(err)
	}
	of := fmt.Sprintf("delete of %s %s with %s of\n%s\nplan:\n%s", root.resource, root.name, policy, strings.Join(before, "\n"), text)
	p.compare(names, before, plan.outcomes(false), plan.doubt(), of)
	went := p.sum.went
	left := slices.DeleteFunc(slices.Clone(plan.Items), func(i foretoldItem) bool { return len(i.Finalizers) == 0 && i.Stage == 0 })
	if len(left) < 2 {
		p.Errorf("nothing waits for what is held: %s", of)
	}
	p.removeHold(held)
	if p.sum.went, p.sum.kept = 0, 0; plan.doubt() { // all are counted again
		p.sum.doubtful--
	}
	p.compare(names, before, plan.outcomes(true), plan.doubt(), of)
	p.sum.later += p.sum.went - went
}

// removeHold takes the finalizer off that holds an object, and leaves it those of others.
func (p *predictor) removeHold(name string) {
	p.Helper()
	p.until("the finalizer comes off "+name, func(ctx context.Context) (bool, error) {
		o := p.get(name)
		if o == nil {
			return false, errors.New("it is gone")
		}
		o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == holds }))
		_, err := p.at(p.of(name)).Update(ctx, o, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}
