package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/klauspost/compress/zstd"
)

const (
	// MostSealed bounds a sealed chunk, in bytes. As JSON it is a third larger, and etcd takes
	// 1.5 MiB.
	MostSealed = 1 << 20
	// mostPiece is how much is sealed at once, without its nonce and tag.
	mostPiece = MostSealed - 12 - 16
	// window is how far compression looks back. Both ends hold it in memory.
	window = 1 << 20
)

// Chunk is a part of a tree.
type Chunk struct {
	Sequence int32
	Last     bool
	Sealed   []byte
}

// sealedWith returns what is authenticated with a chunk.
func sealedWith(tree string, sequence int32, last bool) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0}, uint32(sequence))
	if last {
		b[0] = 1
	}
	return append(b, tree...)
}

// Seal yields chunks of objects, as they come. An error of the objects ends the chunks, and none of
// them is the last.
func Seal(tree string, key Key, objects iter.Seq2[Object, error]) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		c := &cutter{tree: tree, key: key, yield: func(c Chunk) bool { return yield(c, nil) }}
		if err := c.all(objects); err != nil && !errors.Is(err, errEnough) {
			yield(Chunk{}, err)
		}
	}
}

// errEnough says that the caller wants no more chunks.
var errEnough = errors.New("no more chunks are wanted")

// cutter cuts what is written to it into chunks.
type cutter struct {
	tree     string
	key      Key
	yield    func(Chunk) bool
	sequence int32
	piece    []byte
}

func (c *cutter) all(objects iter.Seq2[Object, error]) error {
	z, err := zstd.NewWriter(c, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		return err
	}
	for o, err := range objects {
		if err == nil {
			err = o.writeTo(z)
		}
		if err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	return c.cut(true)
}

// Write keeps a whole piece until more comes, since it may be the last.
func (c *cutter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if len(c.piece) == mostPiece {
			if err := c.cut(false); err != nil {
				return 0, err
			}
		}
		take := min(len(p), mostPiece-len(c.piece))
		c.piece, p = append(c.piece, p[:take]...), p[take:]
	}
	return n, nil
}

func (c *cutter) cut(last bool) error {
	sealed := c.key.aead.Seal(nil, nil, c.piece, sealedWith(c.tree, c.sequence, last))
	if !c.yield(Chunk{Sequence: c.sequence, Last: last, Sealed: sealed}) {
		return errEnough
	}
	c.sequence++
	c.piece = c.piece[:0]
	return nil
}

// Open yields the objects of a tree whose chunks come in order. An error is the last that it
// yields: the objects before it are right, but not all.
func Open(tree string, key Key, chunks iter.Seq2[Chunk, error]) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		next, stop := iter.Pull2(chunks)
		defer stop()
		j := &joiner{tree: tree, key: key, next: next}
		z, err := zstd.NewReader(j, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
		if err != nil {
			yield(Object{}, err)
			return
		}
		defer z.Close()
		for {
			o, err := readObject(z)
			switch {
			case j.err != nil && !errors.Is(j.err, io.EOF): // err follows from it, and says less
				err = j.err
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				err = fmt.Errorf("read a record of the archived tree %s: %w", tree, err)
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

// joiner reads the content of chunks.
type joiner struct {
	tree     string
	key      Key
	next     func() (Chunk, error, bool)
	sequence int32
	last     bool
	piece    []byte
	err      error // of the chunks; io.EOF after the last
}

func (j *joiner) Read(p []byte) (int, error) {
	for len(j.piece) == 0 && j.err == nil {
		j.piece, j.err = j.open()
	}
	if len(j.piece) == 0 {
		return 0, j.err
	}
	n := copy(p, j.piece)
	j.piece = j.piece[n:]
	return n, nil
}

func (j *joiner) open() ([]byte, error) {
	c, err, more := j.next()
	switch {
	case err != nil:
		return nil, err
	case !more && j.last:
		return nil, io.EOF
	case !more:
		return nil, fmt.Errorf("the archived tree %s is cut off: chunk %d is missing", j.tree, j.sequence)
	case j.last:
		return nil, fmt.Errorf("the archived tree %s goes on after its last chunk, with chunk %d", j.tree, c.Sequence)
	case c.Sequence != j.sequence:
		return nil, fmt.Errorf("the archived tree %s has chunk %d where chunk %d belongs", j.tree, c.Sequence, j.sequence)
	}
	piece, err := j.key.aead.Open(nil, nil, c.Sealed, sealedWith(j.tree, c.Sequence, c.Last))
	if err != nil {
		return nil, fmt.Errorf("chunk %d of the archived tree %s does not open: "+
			"it was sealed with another key or for another place, or altered", c.Sequence, j.tree)
	}
	j.sequence++
	j.last = c.Last
	return piece, nil
}
