package metaonly

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReadList reads an answer to a list, as protobuf or JSON, and passes on the metadata of each
// object as it comes, so that it holds only one object at a time. In JSON the objects may be whole,
// as from an API that does not know metadata alone. If it returns an error, each may have had some
// of the objects.
func ReadList(answer io.Reader, each func(*metav1.PartialObjectMetadata)) (metav1.ListMeta, error) {
	in := bufio.NewReaderSize(answer, mostRead)
	if head, err := in.Peek(len(prefix)); err == nil && bytes.Equal(head, prefix) {
		return (&reader{in: in, each: each}).read()
	}
	return readJSON(json.NewDecoder(in), each)
}

func readJSON(in *json.Decoder, each func(*metav1.PartialObjectMetadata)) (is metav1.ListMeta, err error) {
	kind := ""
	err = eachField(in, func(name string) error {
		switch name {
		case "kind":
			return in.Decode(&kind)
		case "metadata":
			return in.Decode(&is)
		case "items":
			return eachItem(in, each)
		}
		return in.Decode(&json.RawMessage{})
	})
	if err != nil {
		return is, incomplete(err)
	}
	if !strings.HasSuffix(kind, "List") {
		return is, fmt.Errorf("a %s is no list", kind)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) { // reading to the end frees the connection
		return is, fmt.Errorf("more comes than the list: %w", err)
	}
	return is, nil
}

// eachField reads an object to its end. field reads the values.
func eachField(in *json.Decoder, field func(name string) error) error {
	if err := delimiter(in, '{'); err != nil {
		return err
	}
	for in.More() {
		t, err := in.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string) // field names are strings
		if err := field(name); err != nil {
			return err
		}
	}
	return delimiter(in, '}')
}

// eachItem reads a list of objects, or null.
func eachItem(in *json.Decoder, each func(*metav1.PartialObjectMetadata)) error {
	t, err := in.Token()
	if err != nil || t == nil {
		return err
	}
	if t != json.Delim('[') {
		return fmt.Errorf("items begin with %v", t)
	}
	for in.More() {
		m := &metav1.PartialObjectMetadata{}
		if err := in.Decode(m); err != nil {
			return err
		}
		each(m)
	}
	return delimiter(in, ']')
}

func delimiter(in *json.Decoder, want json.Delim) error {
	t, err := in.Token()
	if err == nil && t != want {
		return fmt.Errorf("%v where %v was expected", t, want)
	}
	return err
}
