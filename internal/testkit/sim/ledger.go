package sim

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ledger is what the server knows of an object's references, whatever any collector saw.
type ledger struct {
	// real are those of its references whose owner was there when they were written.
	real map[string]bool
	// left are the references that it had after an orphaning owner let it go, its last that was
	// there, and whose owners were absent by then; nil if none did.
	left map[string]bool
}

func (l ledger) clone() ledger { return ledger{maps.Clone(l.real), maps.Clone(l.left)} }

// words are what a reference says about its owner.
func words(r metav1.OwnerReference) string {
	return r.APIVersion + " " + r.Kind + " " + r.Name + " " + string(r.UID)
}

// note brings the ledger up to date with references that were written now.
func (s *server) note(o *object) {
	before := o.ledger.real
	o.ledger.real = map[string]bool{}
	for _, r := range o.Owners {
		if before[words(r)] || s.owner(r, o.Namespace) != nil {
			o.ledger.real[words(r)] = true
		}
	}
}

// tookOff notes that a collector took the references of an object to orphaning owners off. unknown
// tells of an owner that is gone, and of whose end the collector had not been told when it decided.
func (s *server) tookOff(o *object, before []metav1.OwnerReference, unknown func(types.UID) bool) {
	orphaned := false
	for _, r := range before {
		if slices.ContainsFunc(o.Owners, func(stays metav1.OwnerReference) bool { return words(stays) == words(r) }) {
			continue
		}
		k := s.typeOf(r)
		if k == nil {
			continue
		}
		owner := s.owner(r, o.Namespace)
		if owner == nil {
			owner = meant(s.buried[r.UID], k, r, o.Namespace)
		}
		orphaned = orphaned || owner != nil && owner.wasOrphaning
	}
	if !orphaned {
		return
	}
	o.ledger.left = map[string]bool{}
	for _, r := range o.Owners {
		if s.owner(r, o.Namespace) != nil || unknown(r.UID) {
			o.ledger.left = nil // it has another owner, and what becomes of that is another matter
			return
		}
		k := s.typeOf(r)
		if k != nil && k.served && !k.forbidden && (!k.Namespaced || o.Namespace != "") {
			o.ledger.left[words(r)] = true
		}
	}
}

// owedLife tells whether an object is left with nothing but references to owners that never were,
// by a collector that let it go from an owner that was deleted with orphan: whoever asked for that
// wants it to live.
func (o *object) owedLife() bool {
	if o.ledger.left == nil || len(o.Owners) == 0 {
		return false
	}
	return !slices.ContainsFunc(o.Owners, func(r metav1.OwnerReference) bool {
		return !o.ledger.left[words(r)] || o.ledger.real[words(r)]
	})
}

// lost finds an object that would be in danger if an orphaning owner went now: it refers to the
// owner, and is of a kind that a collector knew that it did not follow when it decided, or had been
// told so by then. nil if there is none. One that the watch had not come to yet is no process's
// fault: it is released when it is seen.
func (s *server) lost(owner *object, unfollowed map[schema.GroupResource]bool, told map[schema.GroupResource]int) *object {
	for _, o := range s.all() {
		k := s.kind(o.Kind)
		if !watched(k) || o.UID == owner.UID {
			continue
		}
		refers := func(o *object) bool {
			return slices.ContainsFunc(o.Owners, func(r metav1.OwnerReference) bool { return s.owner(r, o.Namespace) == owner })
		}
		var then *object // as the collector had been told
		for _, c := range k.log[:told[o.Kind]] {
			if c.object.UID == o.UID {
				then = c.object
			}
		}
		if refers(o) && (unfollowed[o.Kind] && (k.Namespaced || owner.Namespace == "") || then != nil && refers(then)) {
			return o
		}
	}
	return nil
}

// backup is a copy of everything, to be restored.
func (s *server) backup() *server {
	c := &server{version: s.version, uids: s.uids, longUID: s.longUID, buried: map[types.UID]*object{}, ending: maps.Clone(s.ending)}
	for uid, o := range s.buried {
		c.buried[uid] = o.clone()
	}
	for _, k := range s.kinds {
		copied := *k
		copied.objects, copied.log = map[types.UID]*object{}, nil
		for uid, o := range k.objects {
			copied.objects[uid] = o.clone()
		}
		c.kinds = append(c.kinds, &copied)
	}
	return c
}

// restore makes the server what it was at a backup. Versions go back, or jump far ahead; uids do
// not come again.
func (s *server) restore(b *server, bump bool) {
	b = b.backup() // it may be restored again
	s.buried, s.ending = b.buried, b.ending
	if s.version = b.version; bump {
		s.version += 1_000_000_000
	}
	for i, k := range s.kinds {
		k.served, k.ending, k.objects = b.kinds[i].served, b.kinds[i].ending, b.kinds[i].objects
		for _, uid := range sortedKeys(k.objects) {
			k.log = append(k.log, change{object: k.objects[uid].clone()})
		}
		k.restored = len(k.log)
	}
}
