package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mostBytes bounds an object. The API server takes 3 MiB at most; an object of an aggregated API
// may be larger.
const mostBytes = 32 << 20

// Object is an object as the API server gave it.
type Object struct {
	Resource schema.GroupVersionResource
	Raw      []byte // JSON
	// Again is set if the object was recorded before, and has changed since: the last record counts.
	// It is not stored.
	Again bool
}

// writeTo writes a record: its length in four bytes, a line with the resource, and the object.
func (o Object) writeTo(w io.Writer) error {
	line := o.Resource.Group + "/" + o.Resource.Version + "/" + o.Resource.Resource + "\n"
	size := len(line) + len(o.Raw)
	if size > mostBytes {
		return fmt.Errorf("an object of %s has %d bytes, more than %d", o.Resource.GroupResource(), size, mostBytes)
	}
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(size)), line...))
	if err == nil {
		_, err = w.Write(o.Raw)
	}
	return err
}

// readObject returns the next object. The error is io.EOF if the stream ends between two objects.
func readObject(r io.Reader) (Object, error) {
	var size uint32
	if err := binary.Read(r, binary.BigEndian, &size); err != nil {
		return Object{}, err
	}
	if size > mostBytes {
		return Object{}, fmt.Errorf("a record has %d bytes, more than %d", size, mostBytes)
	}
	record := make([]byte, size)
	if _, err := io.ReadFull(r, record); errors.Is(err, io.EOF) {
		return Object{}, io.ErrUnexpectedEOF
	} else if err != nil {
		return Object{}, err
	}
	line, raw, _ := bytes.Cut(record, []byte("\n"))
	parts := strings.Split(string(line), "/")
	if len(parts) != 3 {
		return Object{}, fmt.Errorf("a record begins with %.100q, which is no resource", line)
	}
	return Object{
		Resource: schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}, Raw: raw,
	}, nil
}
