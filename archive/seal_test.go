package archive

import (
	"bytes"
	"errors"
	"iter"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

func newKey(t interface{ Fatal(...any) }) Key {
	key, err := NewKey(NewKeyBytes())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// each yields all, and then the error, if it is one.
func each[T any](all []T, last error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
		if last != nil {
			var none T
			yield(none, last)
		}
	}
}

func collect[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for v, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

func same(a, b []Object) bool {
	return slices.EqualFunc(a, b, func(a, b Object) bool {
		return a.Resource == b.Resource && bytes.Equal(a.Raw, b.Raw)
	})
}

// noise is an object that cannot be compressed.
func noise(seed int64, size int) Object {
	raw := make([]byte, size)
	rand.New(rand.NewSource(seed)).Read(raw)
	return Object{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Raw: raw}
}

func TestWhatIsSealedComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z.]{0,12}`)
		objects := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Object {
			o := noise(rapid.Int64().Draw(t, "seed"),
				rapid.SampledFrom([]int{0, 1, 300, 40_000, mostPiece - 40, MostSealed + 1}).Draw(t, "size"))
			o.Resource = schema.GroupVersionResource{Group: word.Draw(t, "group"), Version: word.Draw(t, "version"),
				Resource: word.Draw(t, "resource")}
			return o
		}), 0, 3).Draw(t, "objects")
		key := newKey(t)
		chunks, err := collect(Seal("tree", key, each(objects, nil)))
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range chunks {
			if int(c.Sequence) != i || c.Last != (i == len(chunks)-1) || len(c.Sealed) > MostSealed ||
				!c.Last && len(c.Sealed) != MostSealed {
				t.Fatalf("chunk %d of %d: sequence %d, last %t, %d bytes", i, len(chunks), c.Sequence, c.Last, len(c.Sealed))
			}
		}
		got, err := collect(Open("tree", key, each(chunks, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if !same(objects, got) {
			t.Fatalf("sealed %d objects, opened %d", len(objects), len(got))
		}
	})
}

func TestAnArchiveThatIsNotAsItWasIsRefused(t *testing.T) {
	key, other := newKey(t), newKey(t)
	chunks, err := collect(Seal("tree", key, each([]Object{noise(1, MostSealed), noise(2, MostSealed), noise(3, 10)},
		nil)))
	if err != nil || len(chunks) != 3 {
		t.Fatalf("%d chunks, %v", len(chunks), err)
	}
	altered := func(i int, change func(*Chunk)) []Chunk {
		all := slices.Clone(chunks)
		all[i].Sealed = slices.Clone(all[i].Sealed)
		change(&all[i])
		return all
	}
	does := "does not open: it was sealed with another key or for another place, or altered"
	for name, c := range map[string]struct {
		tree   string
		key    Key
		chunks []Chunk
		then   error
		want   string
	}{
		"nothing": {"tree", key, nil, nil, "the archived tree tree is cut off: chunk 0 is missing"},
		"cut off": {"tree", key, chunks[:2], nil, "the archived tree tree is cut off: chunk 2 is missing"},
		"cut off, and so said": {"tree", key, altered(1, func(c *Chunk) {
			c.Last = true
		})[:2], nil, "chunk 1 of the archived tree tree " + does},
		"begins later": {"tree", key, chunks[1:], nil, "the archived tree tree has chunk 1 where chunk 0 belongs"},
		"reordered": {"tree", key, []Chunk{chunks[1], chunks[0], chunks[2]}, nil,
			"the archived tree tree has chunk 1 where chunk 0 belongs"},
		"renumbered": {"tree", key, altered(1, func(c *Chunk) {
			c.Sealed = chunks[0].Sealed
		}), nil, "chunk 1 of the archived tree tree " + does},
		"goes on": {"tree", key, append(slices.Clone(chunks), Chunk{Sequence: 3}), nil,
			"the archived tree tree goes on after its last chunk, with chunk 3"},
		"another key":  {"tree", other, chunks, nil, "chunk 0 of the archived tree tree " + does},
		"another tree": {"bush", key, chunks, nil, "chunk 0 of the archived tree bush " + does},
		"altered": {"tree", key, altered(2, func(c *Chunk) {
			c.Sealed[len(c.Sealed)-1]++
		}), nil, "chunk 2 of the archived tree tree " + does},
		"empty": {"tree", key, altered(0, func(c *Chunk) {
			c.Sealed = nil
		}), nil, "chunk 0 of the archived tree tree " + does},
		"unread": {"tree", key, chunks[:1], errors.New("the store is down"), "the store is down"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := collect(Open(c.tree, c.key, each(c.chunks, c.then))); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestNoChangeOfAnArchiveGoesUnnoticed: chunks are left out, repeated, moved, renumbered, cut and
// altered. What is read is all of it, or its beginning and an error.
func TestNoChangeOfAnArchiveGoesUnnoticed(t *testing.T) {
	key := newKey(t)
	objects := []Object{noise(1, 10), noise(2, MostSealed)} // two chunks
	sealed, err := collect(Seal("tree", key, each(objects, nil)))
	if err != nil {
		t.Fatal(err)
	}
	same := func(a, b Object) bool { return bytes.Equal(a.Raw, b.Raw) }
	rapid.Check(t, func(t *rapid.T) {
		chunks := slices.Clone(sealed)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			if len(chunks) == 0 {
				break
			}
			i, j := rapid.IntRange(0, len(chunks)-1).Draw(t, "chunk"), rapid.IntRange(0, len(chunks)-1).Draw(t, "other")
			c := &chunks[i]
			switch rapid.IntRange(0, 6).Draw(t, "change") {
			case 0:
				chunks = slices.Delete(chunks, i, i+1)
			case 1:
				chunks = slices.Insert(chunks, i, chunks[j])
			case 2:
				chunks[i], chunks[j] = chunks[j], chunks[i]
			case 3:
				c.Sequence = int32(j)
			case 4:
				c.Last = !c.Last
			case 5:
				c.Sealed = c.Sealed[:rapid.IntRange(0, len(c.Sealed)).Draw(t, "bytes")]
			case 6:
				if c.Sealed = slices.Clone(c.Sealed); len(c.Sealed) > 0 {
					c.Sealed[rapid.IntRange(0, len(c.Sealed)-1).Draw(t, "byte")] ^= 1
				}
			}
		}
		changed := !slices.EqualFunc(sealed, chunks, func(a, b Chunk) bool {
			return a.Sequence == b.Sequence && a.Last == b.Last && bytes.Equal(a.Sealed, b.Sealed)
		})
		got, err := collect(Open("tree", key, each(chunks, nil)))
		if changed != (err != nil) || !changed && len(got) < len(objects) ||
			!slices.EqualFunc(objects[:len(got)], got, same) {
			t.Fatalf("%d objects, changed: %t, %v", len(got), changed, err)
		}
	})
}

func TestAnErrorOfTheObjectsLeavesNoLastChunk(t *testing.T) {
	key := newKey(t)
	chunks, err := collect(Seal("tree", key, each([]Object{noise(1, 2*MostSealed)}, errors.New("not listed"))))
	if err == nil || err.Error() != "not listed" || slices.ContainsFunc(chunks, func(c Chunk) bool { return c.Last }) {
		t.Errorf("%d chunks, %v", len(chunks), err)
	}
}

func TestOneMayStopInTheMiddle(t *testing.T) {
	key := newKey(t)
	objects := []Object{noise(1, MostSealed), noise(2, MostSealed)}
	for c, err := range Seal("tree", key, each(objects, nil)) {
		if err != nil || c.Sequence != 0 {
			t.Fatal(c.Sequence, err)
		}
		break
	}
	chunks, _ := collect(Seal("tree", key, each(objects, nil)))
	for o, err := range Open("tree", key, each(chunks, nil)) {
		if err != nil || len(o.Raw) != MostSealed {
			t.Fatal(len(o.Raw), err)
		}
		break
	}
}

func TestTheKeyOfATreeIsUnwrappedForThatTreeOnly(t *testing.T) {
	archive := newKey(t)
	key, wrapped, err := archive.NewTreeKey("tree")
	if err != nil {
		t.Fatal(err)
	}
	chunks, _ := collect(Seal("tree", key, each([]Object{noise(1, 5)}, nil)))
	again, err := archive.TreeKey("tree", wrapped)
	if err != nil {
		t.Fatal(err)
	}
	got, err := collect(Open("tree", again, each(chunks, nil)))
	if diff := cmp.Diff([]Object{noise(1, 5)}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for name, err := range map[string]error{
		"another tree": second(archive.TreeKey("bush", wrapped)), "another key": second(newKey(t).TreeKey("tree", wrapped)),
		"nothing": second(archive.TreeKey("tree", nil)),
	} {
		if err == nil || !strings.Contains(err.Error(), "does not unwrap") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second(_ Key, err error) error { return err }

// FuzzOpen: whatever is in chunks that were sealed with the right key, reading ends, and with no
// more in memory than one object may have.
func FuzzOpen(f *testing.F) {
	key := newKey(f)
	f.Add([]byte{}, false)
	whole, _ := collect(Seal("tree", key, each([]Object{noise(1, 50), noise(2, 0)}, nil)))
	plain, _ := key.aead.Open(nil, nil, whole[0].Sealed, sealedWith("tree", 0, true))
	f.Add(plain, true)
	f.Fuzz(func(t *testing.T, content []byte, last bool) {
		chunk := Chunk{Last: last, Sealed: key.aead.Seal(nil, nil, content, sealedWith("tree", 0, last))}
		n := 0
		for o, err := range Open("tree", key, each([]Chunk{chunk}, nil)) {
			if n++; err == nil && len(o.Raw) > mostBytes {
				t.Errorf("%d bytes", len(o.Raw))
			}
			if n > 1000 {
				break
			}
		}
		if !last {
			if _, err := collect(Open("tree", key, each([]Chunk{chunk}, nil))); err == nil {
				t.Error("what is cut off was read")
			}
		}
	})
}
