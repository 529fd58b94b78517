package metaonly

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
func (k *Kind) Page(
	ctx context.Context, o metav1.ListOptions, each func(*metav1.PartialObjectMetadata),
) (metav1.ListMeta, error) {
	body, err := At(k.client.lists.Get(), k.kind, k.namespace).SetHeader("Accept", acceptList).
		SpecificallyVersionedParams(&o, metav1.ParameterCodec, metav1.Unversioned).
		SetHeader("Accept-Encoding", "identity"). // compression would cost the API server a tenth more
		Stream(ctx)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	defer func() { _ = body.Close() }()
	m, err := readList(body, each)
	if err != nil {
		err = fmt.Errorf("list %s: %w", k.kind.GroupResource(), err)
	}
	return m, err
}

// readList reads an answer to a list, as protobuf or JSON. In JSON the objects may be whole, as
// from an API that does not know metadata alone.
func readList(answer io.Reader, each func(*metav1.PartialObjectMetadata)) (metav1.ListMeta, error) {
	in := bufio.NewReaderSize(answer, mostRead)
	if head, err := in.Peek(len(prefix)); err == nil && bytes.Equal(head, prefix) {
		is, err := (&reader{in: in}).read(each)
		return is, incomplete(err)
	}
	var list metav1.PartialObjectMetadataList
	d := json.NewDecoder(in)
	if err := d.Decode(&list); err != nil {
		return metav1.ListMeta{}, fmt.Errorf("decode the list: %w", err)
	}
	if !strings.HasSuffix(list.Kind, "List") {
		return metav1.ListMeta{}, fmt.Errorf("a %s is no list", list.Kind)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) { // reading to the end frees the connection
		return metav1.ListMeta{}, fmt.Errorf("more comes than the list: %w", err)
	}
	for i := range list.Items {
		each(&list.Items[i])
	}
	return list.ListMeta, nil
}

// reader reads a PartialObjectMetadataList in protobuf as it comes.
type reader struct {
	in     *bufio.Reader
	at     uint64 // how many bytes were read
	buffer []byte // the value that was read last
}

// read passes on the objects of what begins with prefix, and returns the metadata of the list.
func (r *reader) read(each func(*metav1.PartialObjectMetadata)) (is metav1.ListMeta, err error) {
	_, _ = r.in.Discard(len(prefix)) // cannot fail: they are buffered
	field, err := r.field(mostHeader)
	if err != nil {
		return is, err
	}
	what := runtime.TypeMeta{}
	if field != fieldTypeMeta || what.Unmarshal(r.buffer) != nil || what != partialList {
		return is, fmt.Errorf("%w: it is not what was asked for", errUnknown)
	}
	field, n, err := r.next()
	if err == nil && field != fieldRaw {
		err = fmt.Errorf("%w: field %d where the list is expected", errUnknown, field)
	}
	for end := r.at + n; err == nil && r.at < end; {
		if field, err = r.field(mostObject); err != nil {
			break
		}
		m := &metav1.PartialObjectMetadata{}
		switch {
		case r.at > end:
			err = fmt.Errorf("%w: an object is longer than the list", errUnknown)
		case field == fieldListMetadata:
			err = is.Unmarshal(r.buffer)
		case field == fieldItems:
			if err = m.Unmarshal(r.buffer); err == nil {
				each(m)
			}
		}
	}
	for err == nil { // to the end, which frees the connection; the encoding is empty
		switch field, n, err = r.next(); {
		case errors.Is(err, io.EOF):
			return is, nil
		case err == nil && (n > 0 || field == fieldRaw):
			err = fmt.Errorf("%w: field %d, of %d bytes, after the list", errUnknown, field, n)
		}
	}
	return is, err
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

// incomplete turns io.EOF into an error, where more had to come.
func incomplete(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// field reads the next field into the buffer.
func (r *reader) field(atMost uint64) (field protowire.Number, err error) {
	field, n, err := r.next()
	if err != nil {
		return 0, err
	}
	if n > atMost {
		return 0, fmt.Errorf("%w: %d bytes come at once, and %d are the most", errUnknown, n, atMost)
	}
	r.buffer = slices.Grow(r.buffer[:0], int(n))[:n]
	got, err := io.ReadFull(r.in, r.buffer)
	r.at += uint64(got)
	return field, incomplete(err)
}

// ReadByte implements io.ByteReader.
func (r *reader) ReadByte() (byte, error) {
	b, err := r.in.ReadByte()
	if err == nil {
		r.at++
	}
	return b, err
}
