package graph

// slab holds values at stable ids, in chunks. It grows without copying, and gives back the memory
// of empty chunks. 0 is never an id. Values of ids that are not in use are zero, and must not be
// written.
type slab[T any] struct {
	chunks [][]T
	rooms  []room   // of each chunk
	open   []uint32 // chunks with room, each once, and some that were given back since
	given  []uint32 // chunks that were given back
	spare  uint32   // an empty chunk that is kept; 0: there is none
	next   uint32   // all ids that ever were in use are below it
	used   int
	zeros  []T // stands in for chunks that were given back
}

// room is what is in use of a chunk.
type room struct {
	freed []uint16 // places that are not in use any more
	fresh uint16   // places from here on were never in use since the chunk was made
	used  uint16
	// open: it is in slab.open. given: it was given back.
	open, given bool
}

const (
	chunkBits = 12
	chunkSize = 1 << chunkBits
)

// newSlab returns a slab with the value of id 0, which is always zero.
func newSlab[T any]() (s slab[T]) {
	s.withRoom()
	return s
}

func (s *slab[T]) alloc() uint32 {
	at := s.withRoom()
	c := &s.rooms[at]
	if at == s.spare {
		s.spare = 0
	}
	var place uint16
	if n := len(c.freed); n > 0 {
		place, c.freed = c.freed[n-1], c.freed[:n-1]
	} else {
		place = c.fresh
		c.fresh++
	}
	c.used++
	s.used++
	if len(c.freed) == 0 && c.fresh == chunkSize { // it is the last in s.open
		c.open, s.open = false, s.open[:len(s.open)-1]
	}
	id := at<<chunkBits | uint32(place)
	s.next = max(s.next, id+1)
	return id
}

// withRoom returns a chunk with room, the last of s.open, and makes one if need be.
func (s *slab[T]) withRoom() uint32 {
	for n := len(s.open); n > 0; n = len(s.open) {
		at := s.open[n-1]
		if !s.rooms[at].given {
			return at
		}
		s.rooms[at].open, s.open = false, s.open[:n-1]
	}
	at := uint32(len(s.chunks))
	if n := len(s.given); n > 0 {
		at, s.given = s.given[n-1], s.given[:n-1]
	} else {
		s.chunks, s.rooms = append(s.chunks, nil), append(s.rooms, room{})
	}
	s.chunks[at], s.rooms[at] = make([]T, chunkSize), room{open: true}
	if at == 0 {
		s.rooms[at].fresh = 1
	}
	s.open = append(s.open, at)
	return at
}

func (s *slab[T]) at(id uint32) *T { return &s.chunks[id>>chunkBits][id&(chunkSize-1)] }

func (s *slab[T]) release(id uint32) {
	var zero T
	*s.at(id) = zero
	at := id >> chunkBits
	c := &s.rooms[at]
	c.freed = append(c.freed, uint16(id&(chunkSize-1)))
	c.used--
	s.used--
	switch {
	case c.used == 0 && at != 0 && s.spare != 0:
		s.giveBack(at)
		return
	case c.used == 0 && at != 0:
		s.spare = at
	}
	if !c.open {
		c.open, s.open = true, append(s.open, at)
	}
}

// giveBack frees the memory of an empty chunk. One empty chunk is kept, or an object that comes and
// goes would allocate a chunk each time.
func (s *slab[T]) giveBack(at uint32) {
	if s.zeros == nil {
		s.zeros = make([]T, chunkSize)
	}
	s.chunks[at], s.rooms[at] = s.zeros, room{open: s.rooms[at].open, given: true}
	s.given = append(s.given, at)
}
