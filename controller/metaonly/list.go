package metaonly

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
)

// The numbers of fields on the wire, from the API's generated.proto files.
const (
	fieldTypeMeta, fieldRaw       = 1, 2 // of runtime.Unknown
	fieldListMetadata, fieldItems = 1, 2 // of PartialObjectMetadataList
)

// prefix begins what the API server sends as protobuf.
var prefix = []byte("k8s\x00")

// acceptList asks for metadata alone; plain JSON is for servers that have nothing else.
const acceptList = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// mostHeader and mostObject bound, in bytes, what is in memory of a list at a time: its type or
// metadata, and one object. The API server stores no object of a tenth of that.
const mostHeader, mostObject = 1 << 16, 64 << 20

// mostRead is the size of a read.
const mostRead = 32 << 10

var partialList = runtime.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadataList"}

// errUnknown says that a list is not understood.
var errUnknown = errors.New("the list is not understood")

// Page reads one page of a list and passes each object to each as it comes. It returns the metadata
// of the list: its version, and where it continues. If it returns an error, each may have had some
// of the objects.
//
// client-go reads the page, as a whole, if kind does not come from New.
func Page(
	ctx context.Context, kind metadata.Getter, o metav1.ListOptions, each func(*metav1.PartialObjectMetadata),
) (metav1.ListMeta, error) {
	if g, ok := kind.(*getter); ok {
		return g.page(ctx, o, each)
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

func (g *getter) page(
	ctx context.Context, o metav1.ListOptions, each func(*metav1.PartialObjectMetadata),
) (metav1.ListMeta, error) {
	// Compression would cost the API server a tenth more.
	body, err := g.get(g.client.lists, acceptList, o).SetHeader("Accept-Encoding", "identity").Stream(ctx)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	defer func() { _ = body.Close() }()
	m, err := ReadList(body, each)
	if err != nil {
		err = fmt.Errorf("list %s: %w", g.kind.GroupResource(), err)
	}
	return m, err
}

// reader reads a PartialObjectMetadataList as it comes.
type reader struct {
	in   *bufio.Reader
	at   uint64 // how many bytes were read
	each func(*metav1.PartialObjectMetadata)

	metadata metav1.ListMeta
	buffer   []byte // the value that was read last
}

// read passes on the objects of what begins with prefix, and returns the metadata of the list.
func (r *reader) read() (metav1.ListMeta, error) {
	_, _ = r.in.Discard(len(prefix)) // cannot fail: they are buffered
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
			err = fmt.Errorf("%w: it is not what was asked for", errUnknown)
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

// items reads the list itself, up to the byte end.
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

// item passes on the object in the buffer.
func (r *reader) item() error {
	m := &metav1.PartialObjectMetadata{}
	if err := unknown(m.Unmarshal(r.buffer)); err != nil {
		return err
	}
	r.each(m)
	return nil
}

// next reads the number and the length of the next field. The error is io.EOF if there is none.
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

// unknown wraps an error of client-go's decoder.
func unknown(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return nil
}

// incomplete turns io.EOF into an error, where more had to come.
func incomplete(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
