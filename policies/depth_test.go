package policies

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func lists(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

func objectsIn(depth int) string {
	return strings.Repeat(`{"a":`, depth) + "0" + strings.Repeat("}", depth)
}

func TestDepthIsThatOfTheNesting(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		deep bool
	}{
		"nothing":                         {"", false},
		"as deep as may be":               {lists(MostDepth), false},
		"one more":                        {lists(MostDepth + 1), true},
		"objects, as deep as may be":      {objectsIn(MostDepth), false},
		"objects, one more":               {objectsIn(MostDepth + 1), true},
		"both in turns, one more":         {strings.Repeat(`{"a":[`, MostDepth/2) + "[", true},
		"never closed":                    {strings.Repeat("[", MostDepth+1), true},
		"many beside each other":          {"[" + strings.Repeat("[],", 2*MostDepth) + "{}]", false},
		"many in a string":                {`{"a":"` + strings.Repeat("[", 2*MostDepth) + `"}`, false},
		"many in a string with quotes":    {`{"a":"` + strings.Repeat(`\"[`, 2*MostDepth) + `"}`, false},
		"many in a key":                   {`{"` + strings.Repeat("[", 2*MostDepth) + `":0}`, false},
		"after a string with a backslash": {`["\\",` + strings.Repeat("[", MostDepth), true},
		"after a string with a quote":     {`["\"",` + strings.Repeat("[", MostDepth), true},
		"closed more than opened":         {strings.Repeat("]", 3) + strings.Repeat("[]", 2*MostDepth), false},
	} {
		if got := TooDeep([]byte(c.text), MostDepth); got != c.deep {
			t.Errorf("%s: too deep: %t", name, got)
		}
	}
}

// What is not too deep no decoder in use refuses for its depth, and what they refuse for it is too
// deep: nothing that an API server can store goes past the policies that way.
func TestDepthIsThatOfTheDecoders(t *testing.T) {
	for depth, deep := range map[int]bool{MostDepth: false, MostDepth + 1: true} {
		for name, text := range map[string]string{"lists": lists(depth), "objects": objectsIn(depth)} {
			var v any
			for decoder, err := range map[string]error{
				"encoding/json": json.Unmarshal([]byte(text), &v), "apimachinery": utiljson.Unmarshal([]byte(text), &v),
			} {
				if (err != nil) != deep {
					t.Errorf("%s decodes %d %s: %v", decoder, depth, name, err)
				}
			}
			if TooDeep([]byte(text), MostDepth) != deep {
				t.Errorf("%d %s: too deep: %t", depth, name, !deep)
			}
		}
	}
}

// A stack that overflows ends the test's process, as it would Weir's.
func TestRequestsThatAreNestedTooDeeplyAreAnError(t *testing.T) {
	const most = 4 << 20 // levels of a decoder that goes down need more stack than Go allows
	for name, text := range map[string]string{
		"lists":                strings.Repeat("[", most),
		"objects":              strings.Repeat(`{"a":`, most/5),
		"lists in an object":   `{"a":` + strings.Repeat("[", most-5),
		"lists in metadata":    `{"metadata":` + lists(MostDepth+1) + `}`,
		"closed, in the depth": objectsIn(most / 6),
	} {
		for field, r := range map[string]admissionv1.AdmissionRequest{
			"oldObject": {Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: []byte(text)}},
			"object":    {Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(text)}},
			"options": {Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: []byte("{}")},
				Options: runtime.RawExtension{Raw: []byte(text)}},
		} {
			if _, err := FromRequest(&r); err == nil || !strings.HasPrefix(err.Error(), "decode "+field+" of the request: ") || len(err.Error()) > 200 {
				t.Errorf("%s in %s: %.300v", name, field, err)
			}
		}
	}
}

// gjson reads what is below once for each level: in what is as large and as deep as may be, ten
// thousand times.
func TestMetadataIsReadOnce(t *testing.T) {
	const depth = MostDepth - 10
	text := fmt.Sprintf(`{"metadata":{"name":"web","labels":%s%q%s,"annotations":%s}}`,
		strings.Repeat("[", depth), strings.Repeat("x", 8<<20), strings.Repeat("]", depth), objectsIn(depth))
	began := time.Now()
	q, err := FromRequest(&admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: []byte(text)}})
	if err != nil || q.name() != "web" {
		t.Fatalf("%q, %v", q.name(), err)
	}
	took := time.Since(began)
	began = time.Now()
	var want map[string]any
	if err := utiljson.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	if decoder := time.Since(began); took > 10*decoder+time.Second {
		t.Errorf("took %s, the decoder alone %s", took, decoder)
	}
	// It is what the decoder makes of it, all the same.
	got, err := json.Marshal(q.OldObject)
	if err != nil {
		t.Fatal(err)
	}
	if wanted, err := json.Marshal(want); err != nil || string(got) != string(wanted) {
		t.Errorf("decoded %.200s, want %.200s, %v", got, wanted, err)
	}
}
