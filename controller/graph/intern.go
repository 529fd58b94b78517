package graph

import "encoding/binary"

// interner gives small ids to values that many objects share. An id is valid while an object holds
// it; 0 is never an id.
type interner[K comparable] struct {
	ids  map[K]uint32
	vals []interned[K]
	free []uint32
}

type interned[K comparable] struct {
	val  K
	refs uint32
}

func newInterner[K comparable]() interner[K] {
	return interner[K]{ids: map[K]uint32{}, vals: make([]interned[K], 1)}
}

// hold returns the id of v and adds a holder. fresh is true if v had none.
func (in *interner[K]) hold(v K) (id uint32, fresh bool) {
	if id, ok := in.ids[v]; ok {
		in.vals[id].refs++
		return id, false
	}
	if n := len(in.free); n > 0 {
		id, in.free = in.free[n-1], in.free[:n-1]
		in.vals[id] = interned[K]{v, 1}
	} else {
		id = uint32(len(in.vals))
		in.vals = append(in.vals, interned[K]{v, 1})
	}
	in.ids[v] = id
	return id, true
}

// drop removes a holder.
func (in *interner[K]) drop(id uint32) {
	v := &in.vals[id]
	if v.refs--; v.refs == 0 {
		delete(in.ids, v.val)
		*v = interned[K]{}
		in.free = append(in.free, id)
	}
}

func (in *interner[K]) val(id uint32) K { return in.vals[id].val }

func (in *interner[K]) each(f func(id uint32, v K)) {
	for id := range in.vals {
		if in.vals[id].refs > 0 {
			f(uint32(id), in.vals[id].val)
		}
	}
}

// pack makes one string of a list, whatever its strings contain.
func pack(list []string) string {
	size := 0
	for _, s := range list {
		size += len(s) + binary.MaxVarintLen16
	}
	b := make([]byte, 0, size)
	for _, s := range list {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return string(b)
}

func unpack(packed string) (list []string) {
	for b := []byte(packed); len(b) > 0; {
		n, width := binary.Uvarint(b)
		b = b[width:]
		list = append(list, string(b[:n]))
		b = b[n:]
	}
	return list
}
