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

// FromRequest returns the question of an admission request. The caller adds facts, answers and the
// namespace.
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

// read decodes what policies themselves read of an object: its metadata without managedFields, and
// its kind. The rest is most of the work, and most policies do not need it. The text is for
// conditions that do.
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
	known := map[string]any{}
	err := fieldsOf(o, func(key string, value gjson.Result) (err error) {
		switch {
		case key == "metadata" && value.IsObject():
			known[key], err = metadataOf(value)
		case key == "metadata", key == "apiVersion", key == "kind":
			known[key], err = decodeJSON([]byte(value.Raw))
		}
		return err
	})
	return known, &text{raw: raw}, err
}

// halves reports whether the text may contain escaped surrogates (\ud83d\ude00), or half a pair.
// Like invalid UTF-8, these are left to the decoder. The API server does not escape letters.
func halves(raw []byte) bool {
	return bytes.Contains(raw, []byte(`\ud`)) || bytes.Contains(raw, []byte(`\uD`))
}

func metadataOf(v gjson.Result) (map[string]any, error) {
	m := map[string]any{}
	err := fieldsOf(v, func(key string, value gjson.Result) (err error) {
		if key != cel.ManagedFields {
			m[key], err = decodeJSON([]byte(value.Raw))
		}
		return err
	})
	return m, err
}

// fieldsOf calls f with each field of an object, until it fails. Of fields with the same name the
// last counts, as for the decoder.
func fieldsOf(v gjson.Result, f func(key string, value gjson.Result) error) (err error) {
	v.ForEach(func(key, value gjson.Result) bool {
		err = f(key.Str, value)
		return err == nil
	})
	return err
}

// text is an object as it was sent.
type text struct {
	raw  []byte
	once sync.Once
	all  map[string]any
	err  error
}

// full returns the whole object, decoding it the first time; known if t is nil.
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
	// Whole numbers must be int64 for CEL, as in the API server.
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

// MostDepth bounds the nesting of an object's JSON, in levels. It is the bound of the API server's
// own decoder, so no stored object is refused for it.
const MostDepth = 10_000

// TooDeep reports whether a text is nested more than most levels deep. Code that recurses into JSON
// must ask this first: a stack overflow ends the process, and nothing can recover from it. The text
// need not be valid JSON.
//
// Most texts have fewer brackets, and counting them is many times faster than looking at each byte.
func TooDeep(text []byte, most int) bool {
	if bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) <= most {
		return false
	}
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++ // an escaped character ends no string
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > most {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
