package policies

import (
	"bytes"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/weir-dev/weir/policies/cel"
)

// FromRequest makes a question of an admission request. Facts, answers and the namespace are the
// caller's to add.
func FromRequest(r *admissionv1.AdmissionRequest) (Question, error) {
	q := Question{
		Operation:   Operation(r.Operation),
		User:        User{Name: r.UserInfo.Username, UID: r.UserInfo.UID, Groups: r.UserInfo.Groups},
		Kind:        schema.GroupVersionKind(r.Kind),
		Resource:    schema.GroupVersionResource(r.Resource),
		Subresource: r.SubResource, RequestSubresource: r.RequestSubResource,
		Namespace: r.Namespace, Name: r.Name,
		DryRun: r.DryRun != nil && *r.DryRun,
	}
	if len(r.UserInfo.Extra) > 0 {
		q.User.Extra = make(map[string][]string, len(r.UserInfo.Extra))
		for k, v := range r.UserInfo.Extra {
			q.User.Extra[k] = v
		}
	}
	if r.RequestKind != nil {
		q.RequestKind = schema.GroupVersionKind(*r.RequestKind)
	}
	if r.RequestResource != nil {
		q.RequestResource = schema.GroupVersionResource(*r.RequestResource)
	}
	var err error
	if q.Object, q.object, err = read(r.Object.Raw); err != nil {
		return Question{}, fmt.Errorf("decode object of the request: %w", err)
	}
	if q.OldObject, q.oldObject, err = read(r.OldObject.Raw); err != nil {
		return Question{}, fmt.Errorf("decode oldObject of the request: %w", err)
	}
	if err := decode(r.Options.Raw, &q.Options); err != nil {
		return Question{}, fmt.Errorf("decode options of the request: %w", err)
	}
	return q, q.check()
}

// read decodes what policies read of an object themselves: its metadata without managedFields, and
// what names its kind. The rest is most of the work, and most policies need none of it. The text is
// for conditions that do.
func read(raw []byte) (map[string]any, *text, error) {
	o := gjson.Result{}
	if utf8.Valid(raw) && !halves(raw) && !TooDeep(raw, MostDepth) && gjson.ValidBytes(raw) {
		o = gjson.ParseBytes(raw)
	}
	if !o.IsObject() {
		var full map[string]any
		err := decode(raw, &full)
		return full, nil, err
	}
	known, err := mapOf(o, func(key string, value gjson.Result) (any, bool, error) {
		switch key {
		case "apiVersion", "kind":
			return keep(valueOf(value, 0))
		case "metadata":
			return keep(metadataOf(value))
		}
		return nil, false, nil
	})
	return known, &text{raw: raw}, err
}

// halves tells whether a letter may be written as halves (\ud83d\ude00), or only one of them be
// there: like letters that are none, these are for the decoder to replace. The API server writes
// letters as they are.
func halves(raw []byte) bool {
	return bytes.Contains(raw, []byte(`\ud`)) || bytes.Contains(raw, []byte(`\uD`))
}

func metadataOf(v gjson.Result) (any, error) {
	if !v.IsObject() {
		return valueOf(v, 0)
	}
	return mapOf(v, func(key string, value gjson.Result) (any, bool, error) {
		if key == cel.ManagedFields {
			return nil, false, nil
		}
		return keep(valueOf(value, 0))
	})
}

// shallow is how far down gjson is used: it looks at what is below a level once for each. Metadata
// that an API server accepts is less deep.
const shallow = 8

// valueOf is what decodeJSON makes of a value, depth levels down.
func valueOf(v gjson.Result, depth int) (any, error) {
	switch {
	case depth >= shallow && v.Type == gjson.JSON:
		return decodeJSON([]byte(v.Raw))
	case v.IsObject():
		return mapOf(v, func(_ string, value gjson.Result) (any, bool, error) { return keep(valueOf(value, depth+1)) })
	case v.IsArray():
		list := []any{}
		var err error
		v.ForEach(func(_, value gjson.Result) bool {
			var x any
			x, err = valueOf(value, depth+1)
			list = append(list, x)
			return err == nil
		})
		return list, err
	case v.Type == gjson.Number:
		return decodeJSON([]byte(v.Raw)) // whole ones are int64
	}
	return v.Value(), nil
}

func keep(v any, err error) (any, bool, error) { return v, true, err }

// mapOf are those fields of an object that are kept.
func mapOf(v gjson.Result, field func(key string, value gjson.Result) (any, bool, error)) (map[string]any, error) {
	m := map[string]any{}
	var err error
	v.ForEach(func(key, value gjson.Result) bool {
		var x any
		var kept bool
		if x, kept, err = field(key.Str, value); kept {
			m[key.Str] = x
		}
		return err == nil
	})
	return m, err
}

// text is an object as it came.
type text struct {
	raw  []byte
	once sync.Once
	all  map[string]any
	err  error
}

// full is all of an object of a question: decoded, if it has not been yet.
func (t *text) full(known map[string]any) (map[string]any, error) {
	if t == nil {
		return known, nil
	}
	t.once.Do(func() { t.err = decode(t.raw, &t.all) })
	return t.all, t.err
}

func decode(raw []byte, into *map[string]any) error {
	if len(raw) == 0 {
		return nil
	}
	if TooDeep(raw, MostDepth) {
		return fmt.Errorf("is nested more than %d levels deep", MostDepth)
	}
	// Full numbers have to be int64 for CEL to be what it is in the API server.
	v, err := decodeJSON(raw)
	if err != nil || v == nil {
		return err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("is %s, not an object", jsonType(v))
	}
	*into = m
	return nil
}

func jsonType(v any) string {
	switch v.(type) {
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	}
	return "a number"
}

func decodeJSON(raw []byte) (v any, err error) {
	err = utiljson.Unmarshal(raw, &v)
	return v, err
}
