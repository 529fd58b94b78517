package archive

import (
	"bufio"
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

// writeTo writes the object as two fields, each after its length.
func (o Object) writeTo(w io.Writer) error {
	if len(o.Raw) > mostBytes {
		return fmt.Errorf("an object of %s has %d bytes, more than %d", o.Resource.GroupResource(), len(o.Raw), mostBytes)
	}
	resource := o.Resource.Group + "/" + o.Resource.Version + "/" + o.Resource.Resource
	for _, field := range [][]byte{[]byte(resource), o.Raw} {
		if _, err := w.Write(binary.AppendUvarint(nil, uint64(len(field)))); err != nil {
			return err
		}
		if _, err := w.Write(field); err != nil {
			return err
		}
	}
	return nil
}

// readObject returns the next object. The error is io.EOF if the stream ends between two objects.
func readObject(r *bufio.Reader) (Object, error) {
	if _, err := r.Peek(1); err != nil {
		return Object{}, err
	}
	resource, err := readField(r, 1024)
	if err != nil {
		return Object{}, err
	}
	parts := strings.Split(string(resource), "/")
	if len(parts) != 3 {
		return Object{}, fmt.Errorf("a record begins with %q, which is no resource", resource)
	}
	raw, err := readField(r, mostBytes)
	return Object{
		Resource: schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}, Raw: raw,
	}, err
}

func readField(r *bufio.Reader, limit uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err == nil && n > limit {
		return nil, fmt.Errorf("a field of a record has %d bytes, more than %d", n, limit)
	}
	var field []byte
	if err == nil {
		field = make([]byte, n)
		_, err = io.ReadFull(r, field)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return field, err
}
