package metaonly

import (
	"encoding/json"
	"errors"
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

func read(in io.Reader) (objects []*metav1.PartialObjectMetadata, is metav1.ListMeta, err error) {
	is, err = readList(in, func(m *metav1.PartialObjectMetadata) { objects = append(objects, m) })
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
		got, is, err := read(iotest.OneByteReader(strings.NewReader(c.data)))
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
		objects, _, err := read(strings.NewReader(text))
		if (err != nil) != (want < 0) || err == nil && len(objects) != want {
			t.Errorf("%s: %d objects, %v, want %d", text, len(objects), err, want)
		}
	}
	const whole = `{"kind": "GadgetList", "items": [{"metadata": {"uid": "a"}}]}`
	for n := range whole {
		if _, _, err := read(strings.NewReader(whole[:n])); err == nil {
			t.Errorf("%s is a list", whole[:n])
		}
	}
	broke := errors.New("connection reset by peer")
	if _, _, err := read(io.MultiReader(strings.NewReader(whole[:40]), iotest.ErrReader(broke))); !errors.Is(err,
		broke) {
		t.Error(err)
	}
}
