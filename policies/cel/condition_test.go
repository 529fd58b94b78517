package cel

import (
	"errors"
	"strings"
	"testing"
)

// values are variables as they are.
type values struct {
	object, oldObject, namespace, request map[string]any
	full                                  bool // of the last time
	err                                   error
}

func (v *values) Object(full bool) (map[string]any, error) {
	v.full = full
	return v.object, v.err
}

func (v *values) OldObject(full bool) (map[string]any, error) {
	v.full = full
	return v.oldObject, v.err
}

func (v *values) NamespaceObject() map[string]any { return v.namespace }
func (v *values) Request() map[string]any         { return v.request }

func mustCompile(t *testing.T, text string) Condition {
	t.Helper()
	c, err := Compile("c", text, "spec.match.matchConditions[0].expression")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

func TestWhatDoesNotCompileIsAnErrorOfOneLine(t *testing.T) {
	for text, want := range map[string]string{"oldObject.": "Syntax error",
		"nobody == 1": "undeclared reference to 'nobody'", "1": "must evaluate to bool"} {
		_, err := Compile("c", text, "")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestAConditionThatIsFalseDecides(t *testing.T) {
	yes, no, fails := mustCompile(t, "oldObject.metadata.name == 'web'"),
		mustCompile(t, "oldObject.metadata.name == 'other'"), mustCompile(t, "oldObject.metadata.none == 1")
	for name, c := range map[string]struct {
		conditions   []Condition
		want, failed bool
	}{
		"none":              {nil, true, false},
		"true":              {[]Condition{yes, yes}, true, false},
		"false":             {[]Condition{yes, no}, false, false},
		"one fails":         {[]Condition{fails, yes}, false, true},
		"one fails, false":  {[]Condition{fails, no}, false, false},
		"false, then fails": {[]Condition{no, fails}, false, false},
	} {
		e := Evaluate(&values{oldObject: map[string]any{"metadata": map[string]any{"name": "web"}}})
		if got, err := e.All(c.conditions); got != c.want || (err != nil) != c.failed ||
			err != nil && !strings.HasPrefix(err.Error(), `condition "c": `) {
			t.Errorf("%s: %t (%v), want %t", name, got, err, c.want)
		}
	}
}

func TestOnlyAConditionThatNeedsAllOfAnObjectGetsIt(t *testing.T) {
	for text, full := range map[string]bool{"oldObject.metadata.name == 'web'": false, "oldObject.spec.n == 1": true} {
		c := mustCompile(t, text)
		v := values{oldObject: map[string]any{"metadata": map[string]any{"name": "web"},
			"spec": map[string]any{"n": int64(1)}}}
		e := Evaluate(&v)
		if ok, err := e.All([]Condition{c}); !ok || err != nil || v.full != full || c.MetadataOnly() == full {
			t.Errorf("%s: %t (%v), full: %t, metadata only: %t", text, ok, err, v.full, c.MetadataOnly())
		}
	}
}

// What cannot be decoded is an error, and not null: a condition about null may be true.
func TestAnObjectThatCannotBeDecodedIsAnError(t *testing.T) {
	for _, text := range []string{"object == null", "oldObject == null", "oldObject.spec.n == 1"} {
		e := Evaluate(&values{err: errors.New("is nested too deep")})
		e.Quotes = true
		if ok, err := e.All([]Condition{mustCompile(t, text)}); ok || err == nil ||
			!strings.Contains(err.Error(), "nested too deep") {
			t.Errorf("%s: %t, %v", text, ok, err)
		}
	}
}

// Who is told of an error may not be allowed to read the object: of CEL's words, which quote it,
// the class is told.
func TestErrorsQuoteNothingOfTheObject(t *testing.T) {
	const secret = "hunter2"
	v := values{oldObject: map[string]any{"kind": secret, "metadata": map[string]any{"name": secret},
		"data": map[string]any{"password": secret}}}
	for text, class := range map[string]error{
		"ip(string(oldObject.data.password)).family() == 4":     errOther,
		"int(oldObject.data.password) == 1":                     errWrongType,
		"timestamp(oldObject.metadata.name) == timestamp(0)":    errOther,
		"quantity(oldObject.data.password).isInteger()":         errOther,
		"oldObject.data[oldObject.data.password] == 'x'":        errNoKey,
		"{'a': 1}[oldObject.kind] == 1":                         errNoKey,
		"oldObject.data.password == 'x' || oldObject.none == 1": errNoKey,
		"oldObject.data.password > 1":                           errWrongType,
		"oldObject.data.password.a == 1":                        nil,
		"[1][int(size(oldObject.data.password))] == 1":          errOther,
		"matches('a', oldObject.data.password + '(')":           errOther,
	} {
		e := Evaluate(&v)
		_, err := e.All([]Condition{mustCompile(t, text)})
		if err == nil || strings.Contains(err.Error(), secret) || class != nil && !errors.Is(err, class) {
			t.Errorf("%s: %v, want %v", text, err, class)
		}
		e.Quotes = true
		if _, quoted := e.All([]Condition{mustCompile(t, text)}); quoted == nil || errors.Is(quoted, class) {
			t.Errorf("%s: %v, want what CEL says", text, quoted)
		}
	}
}

// How much a condition costs the object decides; the conditions of a policy share what they may
// cost.
func TestWhatCostsTooMuchIsToldApart(t *testing.T) {
	list := make([]any, 65)
	for i := range list {
		list[i] = int64(i)
	}
	v := values{oldObject: map[string]any{"spec": map[string]any{"list": list, "text": strings.Repeat("a", 100_000)}}}
	one, two := "oldObject.spec.list.all(a, !oldObject.spec.text.contains('x'))",
		"oldObject.spec.list.all(a, oldObject.spec.list.all(b, !oldObject.spec.text.contains('x')))"
	for name, c := range map[string]struct {
		conditions []Condition
		dear       bool
		says       string
	}{
		"one that is cheap enough": {[]Condition{mustCompile(t, one)}, false, ""},
		"one that is not":          {[]Condition{mustCompile(t, two)}, true, "actual cost limit exceeded"},
		"four together": {[]Condition{mustCompile(t, one), mustCompile(t, one), mustCompile(t, one),
			mustCompile(t, one)}, true, "together cost too much"},
	} {
		e := Evaluate(&v)
		ok, err := e.All(c.conditions)
		if ok == c.dear || errors.Is(err, ErrCost) != c.dear || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
}
