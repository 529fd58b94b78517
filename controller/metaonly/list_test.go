package metaonly

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// listOf is a page of a list as the API server sends it.
func listOf(t testing.TB, objects ...*metav1.PartialObjectMetadata) []byte {
	l := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "77", Continue: "more"}}
	for _, m := range objects {
		l.Items = append(l.Items, *m)
	}
	return sent(t, l)
}

// readAll reads a list as it comes, in small pieces.
func readAll(data []byte) (objects []*metav1.PartialObjectMetadata, is metav1.ListMeta, err error) {
	is, err = readList(iotest.OneByteReader(bytes.NewReader(data)), func(m *metav1.PartialObjectMetadata) {
		objects = append(objects, m)
	})
	return objects, is, err
}

// TestListIsReadAsClientGoReadsIt, object by object, with where it continues.
func TestListIsReadAsClientGoReadsIt(t *testing.T) {
	all := samples()
	var objects, want []*metav1.PartialObjectMetadata
	for _, name := range slices.Sorted(maps.Keys(all)) {
		objects, want = append(objects, all[name]), append(want, dropped(*all[name]))
	}
	for name, c := range map[string]struct {
		objects, want []*metav1.PartialObjectMetadata
	}{"many": {objects, want}, "none": {}} {
		got, is, err := readAll(listOf(t, c.objects...))
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil || is.ResourceVersion != "77" || is.Continue != "more" {
			t.Errorf("%s: %v, %+v (-want, +got)\n%s", name, err, is, diff)
		}
	}
}

// TestListThatBreaksOffIsNone, wherever that is: what was handed on is not all.
func TestListThatBreaksOffIsNone(t *testing.T) {
	whole := listOf(t, usual(), usual())
	for n := range whole {
		_, is, err := readAll(whole[:n])
		if err == nil && n > 0 && !endsWithout(whole[n:]) {
			t.Errorf("of %d bytes %d are a list, of version %q", len(whole), n, is.ResourceVersion)
		}
	}
}

// endsWithout tells whether there is nothing in the rest of a list: the encoding, which is empty,
// comes last.
func endsWithout(rest []byte) bool {
	for len(rest) > 0 {
		field, kind, n := protowire.ConsumeTag(rest)
		if n < 0 || kind != protowire.BytesType || field <= fieldRaw {
			return false
		}
		value, length := protowire.ConsumeBytes(rest[n:])
		if length < 0 || len(value) > 0 {
			return false
		}
		rest = rest[n+length:]
	}
	return true
}

// TestListThatIsNotUnderstoodIsAnError: by what is none, no kind would be complete.
func TestListThatIsNotUnderstoodIsAnError(t *testing.T) {
	whole := listOf(t, usual())
	field := func(n protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), value)
	}
	typed := func(is runtime.TypeMeta) []byte {
		data, err := is.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return field(fieldTypeMeta, data)
	}
	isList := typed(partialList)
	with := func(rest ...[]byte) []byte { return slices.Concat(append([][]byte{prefix, isList}, rest...)...) }
	huge := protowire.AppendVarint(protowire.AppendTag(nil, fieldItems, protowire.BytesType), mostObject+1)
	for name, data := range map[string][]byte{
		"an object":                    sent(t, usual()),
		"a status":                     sent(t, &metav1.Status{Message: "no"}),
		"objects before what they are": slices.Concat(prefix, field(fieldRaw, nil)),
		"an encoding":                  with(field(fieldRaw, nil), field(3, []byte("gzip"))),
		"a number": with(protowire.AppendVarint(protowire.AppendTag(nil, fieldRaw,
			protowire.VarintType), 1)),
		"an object longer than the list": with(protowire.AppendVarint(protowire.AppendTag(nil, fieldRaw,
			protowire.BytesType), 10), huge, make([]byte, 100)),
		"an object longer than any": with(protowire.AppendVarint(protowire.AppendTag(nil, fieldRaw,
			protowire.BytesType), 1<<40), huge),
		"an object that is none": with(field(fieldRaw, field(fieldItems, field(1, []byte{0xff})))),
		"a version that is none": with(field(fieldRaw, field(fieldListMetadata, []byte{0xff}))),
		"two lists":              with(field(fieldRaw, nil), field(fieldRaw, nil)),
		"another type behind it": with(field(fieldRaw, field(fieldItems, nil)),
			typed(runtime.TypeMeta{Kind: "PartialObjectMetadata"})),
		"more than the list":             append(bytes.Clone(whole), 0xff),
		"a type that is longer than any": slices.Concat(prefix, field(fieldTypeMeta, make([]byte, mostHeader+1))),
		"an overlong number of its bytes": with(protowire.AppendTag(nil, fieldRaw, protowire.BytesType),
			bytes.Repeat([]byte{0xff}, 11)),
	} {
		if _, _, err := readAll(data); err == nil {
			t.Errorf("%s is a list", name)
		}
	}
}

// TestPageAsksAsClientGoDoes, and reads what the API server has.
func TestPageAsksAsClientGoDoes(t *testing.T) {
	json := `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "77", "continue": "more"},
		"items": [{"metadata": {"name": "web-5d8f7c9b6-x2x7k", "uid": "u"}}]}`
	send := func(w http.ResponseWriter, contentType string, body []byte) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body)
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		asked  int
		err    string
	}{
		"protobuf": {func(w http.ResponseWriter, _ *http.Request) {
			send(w, runtime.ContentTypeProtobuf, listOf(t, usual()))
		}, 1, ""},
		"JSON": {func(w http.ResponseWriter, _ *http.Request) { send(w, "application/json", []byte(json)) }, 1, ""},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write(sent(t, &metav1.Status{Status: metav1.StatusFailure, Message: "pods is forbidden",
				Reason: metav1.StatusReasonForbidden, Code: 403}))
		}, 1, "pods is forbidden"},
		"broken off": {func(w http.ResponseWriter, _ *http.Request) {
			send(w, runtime.ContentTypeProtobuf, listOf(t, usual(), usual())[:1500])
		}, 1, "list pods: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			kind := serving(t, func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, fmt.Sprint(r.Method, " ", r.URL))
				c.answer(w, r)
			}).Kind(pods, "")
			var names []string
			is, err := kind.Page(t.Context(), metav1.ListOptions{Limit: 3, Continue: "from"},
				func(m *metav1.PartialObjectMetadata) {
					names = append(names, m.Name)
				})
			want := slices.Repeat([]string{"GET /api/v1/pods?continue=from&limit=3"}, c.asked)
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("asked (-want, +got)\n%s", diff)
			}
			switch {
			case c.err != "":
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %s", err, c.err)
				}
			case err != nil || is.ResourceVersion != "77" || is.Continue != "more" ||
				!slices.Equal(names, []string{usual().Name}):
				t.Errorf("%q, %+v, %v", names, is, err)
			}
		})
	}
}

// FuzzList: a list that client-go reads is read as it reads it, or not at all.
func FuzzList(f *testing.F) {
	all := samples()
	var objects []*metav1.PartialObjectMetadata
	for _, name := range slices.Sorted(maps.Keys(all)) {
		objects = append(objects, all[name])
		f.Add(listOf(f, all[name]))
	}
	f.Add(listOf(f, objects...))
	real := theirs(f).Serializer
	f.Fuzz(func(t *testing.T, data []byte) {
		got, is, err := readAll(data)
		if err != nil {
			return
		}
		obj, _, err := real.Decode(data, nil, nil)
		if err != nil {
			return
		}
		l, ok := obj.(*metav1.PartialObjectMetadataList)
		if !ok {
			t.Fatalf("client-go reads no list, but %T", obj)
		}
		if is.ResourceVersion != l.ResourceVersion || is.Continue != l.Continue || len(got) != len(l.Items) {
			t.Fatalf("%d objects, %+v, and by client-go %d, %+v", len(got), is, len(l.Items), l.ListMeta)
		}
		for i := range got {
			if diff := cmp.Diff(dropped(l.Items[i]), dropped(*got[i])); diff != "" {
				t.Errorf("object %d (-by client-go, +here)\n%s", i, diff)
			}
		}
	})
}

var _ io.ByteReader = (*reader)(nil)
