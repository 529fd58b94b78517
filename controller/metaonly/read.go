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

// ReadList reads an answer to a list, as protobuf or as JSON, and hands on the metadata of each
// object as it comes. So no more than one object is kept, however much each of them carries. In JSON the objects may be whole, as
// of an API that knows no metadata alone. After an error, each may have had some of the objects.
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
	if _, err := in.Token(); !errors.Is(err, io.EOF) { // whose read gives the connection back
		return is, fmt.Errorf("more comes than the list: %w", err)
	}
	return is, nil
}

// eachField reads an object to its end. Its values are for field to read.
func eachField(in *json.Decoder, field func(name string) error) error {
	if err := delimiter(in, '{'); err != nil {
		return err
	}
	for in.More() {
		t, err := in.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string) // no name of a field is anything else
		if err := field(name); err != nil {
			return err
		}
	}
	return delimiter(in, '}')
}

// eachItem reads the objects of a list; null is none.
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
