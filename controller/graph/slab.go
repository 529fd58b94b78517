package graph

// slab holds values at stable ids, in chunks, so that it grows without copying. Values of ids that
// are not in use are zero, and their room is for those that come next. 0 is never in use.
type slab[T any] struct {
	chunks [][]T
	free   []uint32 // ids that are not in use any more
	next   uint32   // all ids that ever were in use are below it
	used   int
}

const (
	chunkBits = 12
	chunkSize = 1 << chunkBits
)

func newSlab[T any]() slab[T] { return slab[T]{chunks: [][]T{make([]T, chunkSize)}, next: 1} }

func (s *slab[T]) alloc() (id uint32) {
	s.used++
	if n := len(s.free); n > 0 {
		id, s.free = s.free[n-1], s.free[:n-1]
		return id
	}
	id = s.next
	s.next++
	if int(id>>chunkBits) == len(s.chunks) {
		s.chunks = append(s.chunks, make([]T, chunkSize))
	}
	return id
}

func (s *slab[T]) at(id uint32) *T { return &s.chunks[id>>chunkBits][id&(chunkSize-1)] }

func (s *slab[T]) release(id uint32) {
	var zero T
	*s.at(id) = zero
	s.free = append(s.free, id)
	s.used--
}
