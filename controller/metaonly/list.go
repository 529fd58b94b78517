package metaonly

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
)

// Numbers of fields on the wire, from the API's generated.proto files.
const (
	fieldTypeMeta, fieldRaw       = 1, 2 // of runtime.Unknown
	fieldListMetadata, fieldItems = 1, 2 // of PartialObjectMetadataList
)

// prefix begins what the API server sends as protobuf.
var prefix = []byte("k8s\x00")

// acceptList asks for a list in what this package reads, and for nothing else.
const acceptList = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// mostHeader and mostObject bound, in bytes, what is kept at a time of a list that comes: what
// tells its type or its version, and an object. The API server stores no object of a tenth of that.
const mostHeader, mostObject = 1 << 16, 64 << 20

// mostRead is what one read brings of it.
const mostRead = 32 << 10

var partialList = runtime.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadataList"}

var (
	// errOther is what a list ends with that is something else, before anything of it was handed
	// on.
	errOther = errors.New("the list is not what was asked for")
	// errUnknown is what a list ends with that is not understood.
	errUnknown = errors.New("the list is not understood")
)

// Page reads one page of a list, as o says, and hands on each object as it comes. So no page is kept.
// It returns the version of the list, and where it continues. After an error, each may have had some
// of the objects.
//
// From what does not come from New, and from an API server that does not send protobuf, the page is
// client-go's, as a whole. So are all pages of a kind after one that was not understood.
func Page(ctx context.Context, kind metadata.Getter, o metav1.ListOptions, each func(*metav1.PartialObjectMetadata)) (metav1.ListMeta, error) {
	if g, ok := kind.(*getter); ok && !g.unknown.Load() {
		if m, err := g.page(ctx, o, each); !errors.Is(err, errOther) {
			return m, err
		}
	}
	list, err := kind.List(ctx, o)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	for i := range list.Items {
		each(&list.Items[i])
	}
	return list.ListMeta, nil
}

func (g *getter) page(ctx context.Context, o metav1.ListOptions, each func(*metav1.PartialObjectMetadata)) (metav1.ListMeta, error) {
	body, err := g.get(g.client.lists, acceptList, o).SetHeader("Accept-Encoding", "identity").Stream(ctx) // to compress costs the API server a tenth more
	switch {
	case apierrors.IsNotAcceptable(err):
		return metav1.ListMeta{}, errOther
	case err != nil:
		return metav1.ListMeta{}, err
	}
	defer func() { _ = body.Close() }() // all of it was read, or it is given up
	m, err := (&reader{in: bufio.NewReaderSize(body, mostRead), each: each}).read()
	if errors.Is(err, errUnknown) {
		g.unknown.Store(true)
	}
	if err != nil && !errors.Is(err, errOther) {
		err = fmt.Errorf("list %s: %w", g.kind.GroupResource(), err)
	}
	return m, err
}

// reader reads a PartialObjectMetadataList as it comes.
type reader struct {
	in   *bufio.Reader
	at   uint64 // bytes that were read
	each func(*metav1.PartialObjectMetadata)

	metadata metav1.ListMeta
	buffer   []byte // of what was read last
}

// read hands on the objects, and returns the metadata of the list.
func (r *reader) read() (metav1.ListMeta, error) {
	head, err := r.in.Peek(len(prefix))
	if err != nil || !bytes.Equal(head, prefix) { // client-go meets the error again that may have ended it
		return metav1.ListMeta{}, errOther
	}
	_, _ = r.in.Discard(len(prefix)) // they were read
	for isList, whole := false, false; ; {
		field, n, err := r.next()
		switch {
		case errors.Is(err, io.EOF) && whole:
			return r.metadata, nil
		case err != nil:
			err = incomplete(err)
		case field == fieldTypeMeta && !whole:
			var is runtime.TypeMeta
			if err = r.value(n, mostHeader); err == nil {
				isList = is.Unmarshal(r.buffer) == nil && is == partialList
			}
		case !isList && !whole:
			return metav1.ListMeta{}, errOther
		case field == fieldRaw && !whole:
			err = r.items(r.at + n)
			whole = true
		case n > 0 || field == fieldRaw: // an encoding, perhaps, or another list
			err = fmt.Errorf("%w: field %d, of %d bytes", errUnknown, field, n)
		}
		if err != nil {
			return metav1.ListMeta{}, err
		}
	}
}

// items reads the list itself.
func (r *reader) items(end uint64) error {
	for r.at < end {
		field, n, err := r.next()
		if err == nil && n > end-min(r.at, end) {
			err = fmt.Errorf("%w: field %d, of %d bytes, is longer than the list", errUnknown, field, n)
		}
		if err == nil {
			err = r.value(n, mostObject)
		}
		if err != nil {
			return incomplete(err)
		}
		switch field {
		case fieldListMetadata:
			err = unknown(r.metadata.Unmarshal(r.buffer))
		case fieldItems:
			err = r.item()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// item hands on the object in the buffer.
func (r *reader) item() error {
	m := &metav1.PartialObjectMetadata{}
	if err := unknown(m.Unmarshal(r.buffer)); err != nil {
		return err
	}
	r.each(m)
	return nil
}

// next reads which field follows, and of how many bytes; io.EOF: none.
func (r *reader) next() (field protowire.Number, n uint64, err error) {
	tag, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, 0, err
	}
	field, kind := protowire.DecodeTag(tag)
	if kind != protowire.BytesType {
		return 0, 0, fmt.Errorf("%w: field %d, of wire type %d", errUnknown, field, kind)
	}
	n, err = binary.ReadUvarint(r)
	return field, n, incomplete(err)
}

// value reads n bytes into the buffer.
func (r *reader) value(n uint64, atMost int) error {
	if n > uint64(atMost) {
		return fmt.Errorf("%w: %d bytes come at once, and %d are the most", errUnknown, n, atMost)
	}
	r.buffer = slices.Grow(r.buffer[:0], int(n))[:n]
	got, err := io.ReadFull(r.in, r.buffer)
	r.at += uint64(got)
	return incomplete(err)
}

// ReadByte implements io.ByteReader.
func (r *reader) ReadByte() (byte, error) {
	b, err := r.in.ReadByte()
	if err == nil {
		r.at++
	}
	return b, err
}

// unknown is the error of something that client-go's decoder does not take.
func unknown(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return nil
}

// incomplete is the error where more had to come.
func incomplete(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
