package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hold is a finalizer of another controller.
const hold = "differential.weir.test/hold"

// generator writes a script. It does not know what a collector will make of it, and only guesses
// what is still there: what it deletes itself is not chosen again often.
type generator struct {
	random  *rand.Rand
	world   World
	objects []string
	gone    []string // deleted, or never made
	refs    map[string][]Reference
	held    map[string]bool
	counts  map[string]int
}

// Generate is the world of that number. The same arguments give the same world.
func Generate(seed uint64, number, operations int) World {
	g := &generator{
		random: rand.New(rand.NewPCG(seed, uint64(number))),
		world:  World{Seed: seed, Number: number},
		refs:   map[string][]Reference{}, held: map[string]bool{}, counts: map[string]int{},
	}
	for len(g.world.Script) < operations {
		g.step(len(g.world.Script))
	}
	return g.world
}

func (g *generator) step(i int) {
	if i < 6 || len(g.objects) < 4 {
		g.create()
		return
	}
	switch n := g.random.IntN(100); {
	case n < 26:
		g.create()
	case n < 56:
		g.delete()
	case n < 66:
		g.adopt()
	case n < 72:
		g.disown()
	case n < 77:
		g.own()
	case n < 82:
		g.cycle()
	case n < 87:
		g.block()
	case n < 91:
		g.finalize()
	case n < 97:
		g.unfinalize()
	default:
		g.add(Operation{Verb: Touch, Object: g.object()})
	}
}

func (g *generator) add(o Operation) { g.world.Script = append(g.world.Script, o) }

func (g *generator) chance(percent int) bool { return g.random.IntN(100) < percent }

// name is a new one of a random kind.
func (g *generator) name() string {
	k := Kinds[g.random.IntN(len(Kinds))].Short
	g.counts[k]++
	return fmt.Sprintf("%s%d", k, g.counts[k])
}

// object is one that may be there.
func (g *generator) object() string {
	if len(g.objects) == 0 || len(g.gone) > 0 && g.chance(4) {
		return g.gone[g.random.IntN(len(g.gone))]
	}
	// Those made last are the likeliest to be there still.
	return g.objects[max(g.random.IntN(len(g.objects)), g.random.IntN(len(g.objects)))]
}

func (g *generator) create() {
	o := Operation{Verb: Create, Object: g.name()}
	if k := KindOf(o.Object); !k.Cluster {
		o.Namespace = "a"
		if g.chance(20) {
			o.Namespace = "b"
		}
		o.As = g.formerly(k, o.Namespace)
	}
	if len(g.objects) > 2 && g.chance(85) {
		o.Owners = g.references(o.Object)
	}
	switch n := g.random.IntN(100); {
	case n < 15:
		o.Finalizer = hold
	case n < 17:
		o.Finalizer = metav1.FinalizerOrphanDependents
	case n < 19:
		o.Finalizer = metav1.FinalizerDeleteDependents
	}
	g.held[o.Object] = o.Finalizer == hold
	g.refs[o.Object] = o.Owners
	g.objects = append(g.objects, o.Object)
	g.add(o)
}

// formerly is, sometimes, an object that is gone, whose name the next one takes.
func (g *generator) formerly(k Kind, namespace string) string {
	if !g.chance(10) {
		return ""
	}
	for _, o := range g.world.Script {
		if o.Verb == Create && o.Namespace == namespace && o.As == "" && KindOf(o.Object).Short == k.Short && slices.Contains(g.gone, o.Object) {
			return o.Object
		}
	}
	return ""
}

func (g *generator) references(of string) []Reference {
	var refs []Reference
	for range 1 + g.random.IntN(6)/3 + g.random.IntN(8)/7 {
		r := g.reference(of)
		refs = append(refs, r)
		if g.chance(9) { // doubled, the second as it may be
			r.Flaw, r.Block = g.flaw(r.Owner), g.mark()
			refs = append(refs, r)
		}
	}
	g.random.Shuffle(len(refs), func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
	return refs
}

func (g *generator) reference(of string) Reference {
	r := Reference{Block: g.mark()}
	switch n := g.random.IntN(100); {
	case n < 8:
		r.Owner = g.name()
		g.gone = append(g.gone, r.Owner)
	case n < 18 && len(g.gone) > 0:
		r.Owner = g.gone[g.random.IntN(len(g.gone))]
	default:
		r.Owner = g.object()
		// A namespaced owner of a cluster-scoped object keeps it for good: a few such are enough.
		for range 4 {
			if r.Owner != of && (!KindOf(of).Cluster || KindOf(r.Owner).Cluster || g.chance(5)) {
				break
			}
			r.Owner = g.object()
		}
	}
	r.Flaw = g.flaw(r.Owner)
	return r
}

func (g *generator) flaw(owner string) Flaw {
	switch n := g.random.IntN(100); {
	case n < 7:
		return Misnamed
	case n < 11:
		return Mistyped
	case n < 20 && KindOf(owner).Other != "":
		return OtherVersion
	case n < 22:
		return Unserved
	}
	return Sound
}

func (g *generator) mark() Mark {
	return []Mark{Blocking, Blocking, Blocking, Unset, Free}[g.random.IntN(5)]
}

func (g *generator) delete() {
	policies := []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	}
	o := Operation{Verb: Delete, Object: g.object(), Policy: policies[g.random.IntN(len(policies))]}
	g.add(o)
	if !g.held[o.Object] {
		g.leaves(o.Object)
	}
}

func (g *generator) leaves(name string) {
	if i := slices.Index(g.objects, name); i >= 0 && len(g.objects) > 1 {
		g.objects = slices.Delete(g.objects, i, i+1)
		g.gone = append(g.gone, name)
	}
}

func (g *generator) own() {
	o := Operation{Verb: Own, Object: g.object()}
	if g.chance(70) {
		o.Owners = g.references(o.Object)
	}
	g.refs[o.Object] = o.Owners
	g.add(o)
}

func (g *generator) adopt() {
	o := Operation{Verb: Adopt, Object: g.object()}
	o.Owners = []Reference{g.reference(o.Object)}
	g.refs[o.Object] = append(g.refs[o.Object], o.Owners...)
	g.add(o)
}

// cycle gives an owner one of its dependents as an owner.
func (g *generator) cycle() {
	dependent := g.object()
	for _, r := range g.refs[dependent] {
		back := Reference{Owner: dependent, Block: Blocking}
		g.refs[r.Owner] = append(g.refs[r.Owner], back)
		g.add(Operation{Verb: Adopt, Object: r.Owner, Owners: []Reference{back}})
		return
	}
	g.adopt()
}

func (g *generator) disown() {
	name := g.object()
	refs := g.refs[name]
	if len(refs) == 0 {
		g.adopt()
		return
	}
	owner := refs[g.random.IntN(len(refs))].Owner
	g.refs[name] = slices.DeleteFunc(slices.Clone(refs), func(r Reference) bool { return r.Owner == owner })
	g.add(Operation{Verb: Disown, Object: name, Owner: owner})
}

func (g *generator) block() {
	name := g.object()
	refs := g.refs[name]
	if len(refs) == 0 {
		g.adopt()
		return
	}
	verb := Block
	if g.chance(50) {
		verb = Unblock
	}
	g.add(Operation{Verb: verb, Object: name, Owner: refs[g.random.IntN(len(refs))].Owner})
}

func (g *generator) finalize() {
	name := g.object()
	g.held[name] = true
	g.add(Operation{Verb: Finalize, Object: name, Finalizer: hold})
}

func (g *generator) unfinalize() {
	var held []string
	for _, o := range g.world.Script {
		if g.held[o.Object] && !slices.Contains(held, o.Object) {
			held = append(held, o.Object)
		}
	}
	if len(held) == 0 {
		g.finalize()
		return
	}
	name := held[g.random.IntN(len(held))]
	g.held[name] = false
	g.add(Operation{Verb: Unfinalize, Object: name, Finalizer: hold})
}
