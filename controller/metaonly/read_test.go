package metaonly

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func readList(in io.Reader) (objects []*metav1.PartialObjectMetadata, is metav1.ListMeta, err error) {
	is, err = ReadList(in, func(m *metav1.PartialObjectMetadata) { objects = append(objects, m) })
	return objects, is, err
}

// TestListIsReadWithAllMetadata, in either encoding.
func TestListIsReadWithAllMetadata(t *testing.T) {
	all := samples()
	var objects []*metav1.PartialObjectMetadata
	for _, name := range slices.Sorted(maps.Keys(all)) {
		objects = append(objects, all[name])
	}
	labelled := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u",
		ResourceVersion: "7",
		Labels:          map[string]string{"tier": "edge"}, Annotations: map[string]string{"a": "b"},
		Finalizers: []string{"example.com/hold"}}}
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "77", Continue: "more"},
		Items:    []metav1.PartialObjectMetadata{*labelled, *labelled}}
	plain, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data string
		want []*metav1.PartialObjectMetadata
	}{
		"protobuf": {string(listOf(t, objects...)), objects},
		"JSON":     {string(plain) + "\n", []*metav1.PartialObjectMetadata{labelled, labelled}},
	} {
		got, is, err := readList(iotest.OneByteReader(strings.NewReader(c.data)))
		if err != nil || is.ResourceVersion != "77" || is.Continue != "more" {
			t.Errorf("%s: %+v, %v", name, is, err)
		}
		for i := range got {
			got[i].TypeMeta = c.want[i].TypeMeta // it is not sent with protobuf
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want, +got)\n%s", name, diff)
		}
	}
}

// TestListInJSONIsAListAndWhole: by what is none, or a part of one, no namespace would be proved
// empty.
func TestListInJSONIsAListAndWhole(t *testing.T) {
	for text, want := range map[string]int{
		`{"kind": "GadgetList", "metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"uid": "a"}, "spec": {"items": [1]}}, {"metadata": {"uid": "b"}}]}`: 2,
		`{"items": [{"metadata": {"uid": "a"}}], "other": {"items": [{}]}, "kind": "GadgetList"}`:                                                                 1,
		`{"kind": "GadgetList", "items": null}`:        0,
		`{"kind": "GadgetList", "items": []}`:          0,
		`{"kind": "GadgetList"}`:                       0,
		`{"kind": "Gadget", "metadata": {"uid": "a"}}`: -1,
		`{"items": []}`:                                -1,
		`{}`:                                           -1,
		``:                                             -1,
		`null`:                                         -1,
		`[]`:                                           -1,
		`{"kind": "GadgetList", "items": {}}`:          -1,
		`{"kind": "GadgetList", "items": [{}, 1]}`:                    -1,
		`{"kind": "GadgetList", "items": [{}]} {"kind": "Gadget"}`:    -1,
		`{"kind": "GadgetList", "items": [{"metadata": {"uid": 1}}]}`: -1,
		`{"kind": 7, "items": []}`:                                    -1,
	} {
		objects, _, err := readList(strings.NewReader(text))
		if (err != nil) != (want < 0) || err == nil && len(objects) != want {
			t.Errorf("%s: %d objects, %v, want %d", text, len(objects), err, want)
		}
	}
	const whole = `{"kind": "GadgetList", "items": [{"metadata": {"uid": "a"}}]}`
	for n := range whole {
		if _, _, err := readList(strings.NewReader(whole[:n])); err == nil {
			t.Errorf("%s is a list", whole[:n])
		}
	}
	broke := errors.New("connection reset by peer")
	if _, _, err := readList(io.MultiReader(strings.NewReader(whole[:40]), iotest.ErrReader(broke))); !errors.Is(err,
		broke) {
		t.Error(err)
	}
}

// counted is a list that is made as it is read, object by object.
type counted struct {
	next func() (string, bool)
	text string
	made int
}

func (c *counted) Read(p []byte) (int, error) {
	if c.text == "" {
		var more bool
		if c.text, more = c.next(); !more {
			return 0, io.EOF
		}
		c.made++
	}
	n := copy(p, c.text)
	c.text = c.text[n:]
	return n, nil
}

// TestListInJSONIsHandedOnAsItComes: hundreds of objects of a megabyte each are never there at
// once.
func TestListInJSONIsHandedOnAsItComes(t *testing.T) {
	const most = 200
	annotation := strings.Repeat("x", 1<<16)
	i := 0
	in := &counted{next: func() (string, bool) {
		i++
		switch {
		case i == 1:
			return `{"kind": "GadgetList", "items": [{}`, true
		case i > most:
			return `]}`, i == most+1
		}
		return fmt.Sprintf(`, {"metadata": {"uid": "%d", "annotations": {"a": %q}}}`, i, annotation), true
	}}
	n := 0
	if _, err := ReadList(in, func(*metav1.PartialObjectMetadata) {
		if n++; in.made > n+1 {
			t.Errorf("%d pieces were read for %d objects", in.made, n)
		}
	}); err != nil || n != most {
		t.Errorf("%d objects, %v", n, err)
	}
}
