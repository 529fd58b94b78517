package graph

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Check verifies everything that must hold between events: each index against what it indexes, each
// count against what it counts, each verdict against a fresh judgement. It costs a walk over the
// graph.
func (g *Graph) Check() error {
	c := checker{g: g}
	c.entries()
	c.nodes()
	c.claims()
	c.interners()
	c.inventories()
	return errors.Join(c.errs...)
}

type checker struct {
	g    *Graph
	errs []error
}

func (c *checker) that(ok bool, format string, args ...any) {
	if !ok && len(c.errs) < 20 {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

func (c *checker) entries() {
	g, used, siblings := c.g, 0, 0
	for id := uint32(1); id < g.entries.next; id++ {
		e := g.entries.at(id)
		if e.node == 0 && e.claim == 0 {
			continue
		}
		used++
		c.that(g.find(g.uidOf(id)) == id, "entry %d: its uid %q leads to entry %d", id, g.uidOf(id), g.find(g.uidOf(id)))
		for n, of := range g.nodesOf(id) {
			c.that(of.entry == id, "entry %d lists node %d of entry %d", id, n, of.entry)
			if g.next(n) != 0 {
				siblings++
			}
		}
		prev := uint32(0)
		for cl, k := range g.claimsOn(id) {
			c.that(k.entry == id, "entry %d lists claim %d of entry %d", id, cl, k.entry)
			c.that(k.prev == prev, "claim %d: prev is %d, not %d", cl, k.prev, prev)
			prev = cl
		}
	}
	c.that(used == g.entries.used, "%d entries in use, %d counted", used, g.entries.used)
	c.that(used == g.byKey.len()+len(g.byNonCanonical), "%d entries in use, %d indexed",
		used, g.byKey.len()+len(g.byNonCanonical))
	c.that(siblings == len(g.siblings), "%d nodes come before another of their uid, %d are kept",
		siblings, len(g.siblings))
	c.that(len(g.byNonCanonical) == len(g.nonCanonicalUIDs), "%d non-canonical uids indexed, %d kept",
		len(g.byNonCanonical), len(g.nonCanonicalUIDs))
}

func (c *checker) nodes() {
	g, used, ended, waits, rules, causes := c.g, 0, 0, 0, 0, 0
	perSlot := make([]int, len(g.slots))
	for id, n := range g.all() {
		used++
		perSlot[n.slot]++
		name := g.refOf(id)
		c.that(g.nodeOf(n.slot, n.entry) == id, "%s is not found under its uid", name)
		c.that(n.flags&marked == 0, "%s is still marked dirty", name)
		_, listed := g.ending[id]
		c.that(listed == (n.flags&ending != 0), "%s: ending index says %t", name, listed)
		c.that(n.flags&ending == 0 || n.flags&deleting != 0, "%s ends without being deleted", name)
		r, isRuled := g.rulings[id]
		c.that(isRuled == (n.flags&ruled != 0), "%s: ruling index says %t", name, isRuled)
		c.that(!isRuled || n.flags&deleting != 0 && slices.Contains(g.finalizersOf(n), r.finalizer),
			"%s is ruled, and not held by %s", name, r.finalizer)
		if isRuled {
			rules++
		}
		if g.causes[id] != 0 {
			causes++
		}
		if n.flags&ending != 0 {
			ended++
		}
		if n.flags&accepted != 0 {
			waits++
		}
		dependents, blocking := int32(0), int32(0)
		for _, k := range g.claimsOn(n.entry) {
			if k.owner == id {
				dependents += int32(len(k.dependents))
				blocking += k.blocking
			}
		}
		c.that(n.dependents == dependents, "%s counts %d dependents, has %d", name, n.dependents, dependents)
		c.that(n.blocking == blocking, "%s counts %d blocking dependents, has %d", name, n.blocking, blocking)
		c.owners(id)
	}
	c.that(used == g.nodes.used, "%d nodes in use, %d counted", used, g.nodes.used)
	c.that(ended == len(g.ending), "%d nodes end, %d indexed", ended, len(g.ending))
	c.that(rules == len(g.rulings), "%d nodes are ruled, %d indexed", rules, len(g.rulings))
	c.that(causes == len(g.causes), "%d nodes are collected by inference, %d indexed", causes, len(g.causes))
	for _, id := range slices.Concat(slices.Collect(maps.Keys(g.protected)), slices.Collect(maps.Keys(g.unfollowed))) {
		c.that(g.nodes.at(id).entry != 0, "node %d is protected, or has owners that are not followed, and is not there", id)
	}
	c.that(waits == g.accepted, "%d nodes have an accepted request, %d counted", waits, g.accepted)
	for i, want := range perSlot {
		s := &g.slots[i]
		c.that(s.nodes == want, "%s counts %d nodes, has %d", s.GroupResource(), s.nodes, want)
		c.that(want == 0 || s.state != Unwatched, "%s is unwatched and has %d nodes", s.GroupResource(), want)
		for owner := range s.hidden {
			c.that(g.nodes.at(owner).entry != 0, "node %d had dependents of %s, and is not there", owner, s.GroupResource())
		}
	}
}

func (c *checker) owners(id uint32) {
	for i, e := range c.g.nodes.at(id).owners {
		k := c.g.claims.at(e.claim)
		ok := k.entry != 0 && int(e.pos) < len(k.dependents) && k.dependents[e.pos] == dependent{id, uint32(i)}
		c.that(ok, "%s: reference %d is not among the dependents of its claim", c.g.refOf(id), i)
	}
}

func (c *checker) claims() {
	g, used := c.g, 0
	var byVerdict [verdicts]int
	g.claims.each(func(id uint32, k *claim) {
		used++
		byVerdict[k.verdict]++
		name := g.claimValue(id)
		c.that(len(k.dependents) > 0, "claim %v has no dependents", name)
		blocking := int32(0)
		for i, d := range k.dependents {
			edges := g.nodes.at(d.node).owners
			ok := int(d.edge) < len(edges) && edges[d.edge].claim == id && edges[d.edge].pos == uint32(i)
			c.that(ok, "claim %v: dependent %d does not make it", name, i)
			if ok {
				blocking += edges[d.edge].blocks()
			}
		}
		c.that(k.blocking == blocking, "claim %v counts %d blocking, has %d", name, k.blocking, blocking)
		found := g.claims.find(k.key())
		c.that(found == id, "claim %v is indexed as %d, is %d", name, found, id)
		v, owner := g.judge(k)
		c.that(v == k.verdict && owner == k.owner, "claim %v is kept as %s, judged %s", name, k.verdict, v)
		c.that(owner == 0 || k.looked == lookedNot || k.looked == lookedNow, "claim %v has an owner and an answer", name)
		again := k.looked == lookedFailed || k.looked == lookedDenied || k.looked == lookedPresent
		a := &g.claims.agenda
		noted := slices.Contains(a.rounds[k.due%uint32(len(a.rounds))], id) || slices.Contains(a.lines[0], id) ||
			slices.Contains(a.lines[1], id)
		c.that(again == (k.due != 0) && (noted || !again), "claim %v is due in round %d, noted: %t", name, k.due, noted)
	})
	for id := range g.ended {
		c.that(g.claims.at(id).entry != 0, "claim %d is on an owner that was seen to be deleted, and is not there", id)
	}
	c.that(used == g.claims.used, "%d claims in use, %d counted", used, g.claims.used)
	c.that(used == g.claims.byKey.len(), "%d claims in use, %d indexed", used, g.claims.byKey.len())
	c.that(byVerdict == g.claims.byVerdict, "claims by verdict are %v, counted %v", byVerdict, g.claims.byVerdict)
}

func (c *checker) inventories() {
	g := c.g
	type tally struct{ total, terminating, usual int32 }
	type key [2]uint32 // a namespace, and a kind or a list of finalizers
	kinds, finalizers := map[key]tally{}, map[key]int32{}
	for id, n := range g.all() {
		if g.namespaces.val(n.namespace) == "" {
			continue
		}
		t := kinds[key{n.namespace, n.slot}]
		t.total++
		if n.flags&deleting != 0 {
			t.terminating++
		}
		if g.isUsual(n) {
			t.usual++
		}
		kinds[key{n.namespace, n.slot}] = t
		if n.finalizers != 0 {
			finalizers[key{n.namespace, n.finalizers}]++
		}
		inv := g.inventories[n.namespace]
		ok := inv != nil && inv.kinds[n.slot] != nil && int(n.place) < len(inv.kinds[n.slot].nodes) &&
			inv.kinds[n.slot].nodes[n.place] == id
		c.that(ok, "%s is not at its place in the contents of its namespace", g.refOf(id))
	}
	counted := 0
	for ns, inv := range g.inventories {
		counted += len(inv.kinds) + len(inv.finalizers)
		for s, k := range inv.kinds {
			t := tally{int32(len(k.nodes)), k.terminating, k.usual}
			c.that(kinds[key{ns, s}] == t, "namespace %s counts %v of %s, has %v",
				g.namespaces.val(ns), t, g.slots[s].GroupResource(), kinds[key{ns, s}])
		}
		for f, n := range inv.finalizers {
			c.that(finalizers[key{ns, f}] == n, "namespace %s counts %d objects with %v",
				g.namespaces.val(ns), n, unpack(g.finalizers.val(f)))
		}
	}
	c.that(counted == len(kinds)+len(finalizers), "%d things are counted in namespaces, %d are there",
		counted, len(kinds)+len(finalizers))
}

func (c *checker) interners() {
	g := c.g
	namespaces, finalizers, kinds := map[uint32]uint32{}, map[uint32]uint32{}, map[uint32]uint32{}
	for _, n := range g.all() {
		namespaces[n.namespace]++
		if n.finalizers != 0 {
			finalizers[n.finalizers]++
		}
	}
	g.claims.each(func(_ uint32, k *claim) {
		namespaces[k.namespace]++
		kinds[k.typ]++
	})
	checkHolders(c, "namespace", g.namespaces, namespaces)
	checkHolders(c, "finalizers", g.finalizers, finalizers)
	checkHolders(c, "type", g.types, kinds)
}

func checkHolders[K comparable](c *checker, what string, in interner[K], want map[uint32]uint32) {
	c.that(len(in.ids) == len(want), "%s: %d values held, %d wanted", what, len(in.ids), len(want))
	for id, refs := range want {
		c.that(in.vals[id].refs == refs, "%s %v: %d holders, counted %d", what, in.val(id), refs, in.vals[id].refs)
	}
}
