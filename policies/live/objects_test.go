package live

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func thing(name string, generation int64, labels ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetName(name)
	u.SetGeneration(generation)
	set := map[string]string{}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		set[key] = value
	}
	u.SetLabels(set)
	return u
}

// specified has a spec, as after a restore from a backup.
func specified(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.Object["spec"] = map[string]any{"changed": "yes"}
	return u
}

// recording are objects that write down what they tell.
func recording() (*objects, func() []string) {
	var told []string
	s := newObjects(func(first bool) { told = append(told, fmt.Sprintf("first=%t", first)) })
	return s, func() []string {
		out := told
		told = nil
		return out
	}
}

func TestWhatChangesIsTold(t *testing.T) {
	s, told := recording()
	change := []string{"first=false"}
	for _, step := range []struct {
		what string
		do   func() error
		want []string
	}{
		{"an object comes", func() error { return s.Add(thing("a", 1, "x=1")) }, change},
		{"its status changes", func() error { return s.Update(thing("a", 1, "x=1")) }, nil},
		{"its spec changes", func() error { return s.Update(specified(thing("a", 2, "x=1"))) }, change},
		{"its labels change", func() error { return s.Update(specified(thing("a", 2, "x=2"))) }, nil},
		{"it goes", func() error { return s.Delete(specified(thing("a", 2, "x=2"))) }, change},
		{"a list", func() error { return s.Replace([]any{thing("b", 1), thing("c", 1)}, "7") }, []string{"first=true"}},
		{"a list without one of them", func() error { return s.Replace([]any{thing("c", 1)}, "8") }, change},
		{"the same list", func() error { return s.Replace([]any{thing("c", 1)}, "8") }, nil},
		{"a list with another spec under the same generation", func() error {
			return s.Replace([]any{specified(thing("c", 1))}, "9")
		}, change},
		{"an empty list, but not the first", func() error { return s.Replace(nil, "10") }, change},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if diff := cmp.Diff(step.want, told()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}

func TestEmptyFirstListIsToldOnce(t *testing.T) {
	s, told := recording()
	if s.ready() {
		t.Error("ready before the first list")
	}
	for range 2 {
		if err := s.Replace(nil, "1"); err != nil {
			t.Fatal(err)
		}
	}
	if got := told(); len(got) != 1 || got[0] != "first=true" {
		t.Errorf("told %q, want one word", got)
	}
	if !s.ready() {
		t.Error("not ready after the first list")
	}
}

func TestWhatIsNoObjectIsRefused(t *testing.T) {
	s, told := recording()
	for name, do := range map[string]func() error{
		"add": func() error { return s.Add("x") }, "delete": func() error { return s.Delete("x") },
		"replace": func() error { return s.Replace([]any{thing("a", 1), "x"}, "1") },
	} {
		if err := do(); err == nil || err.Error() != "unexpected string" {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if got := told(); len(got) > 0 || len(s.all()) > 0 || s.ready() {
		t.Errorf("half of it was taken: %q", got)
	}
}

func TestManagedFieldsAreNotKept(t *testing.T) {
	s, _ := recording()
	u := thing("a", 1)
	u.Object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "kubectl"}}
	obj, err := s.Transformer()(u)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(obj); err != nil {
		t.Fatal(err)
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(s.get("a"), "metadata", "managedFields"); found {
		t.Error("managedFields are kept")
	}
}

func TestOnlyTheAPIServersOwn404SaysThatAKindIsNotServed(t *testing.T) {
	gr := schema.GroupResource{Group: "weir.dev", Resource: "deletionpolicies"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"404":         {apierrors.NewGenericServerResponse(404, "list", gr, "", "", 0, false), true},
		"404 wrapped": {fmt.Errorf("list: %w", apierrors.NewNotFound(gr, "")), true},
		"403":         {apierrors.NewForbidden(gr, "", nil), false},
		"503":         {apierrors.NewServiceUnavailable("starting"), false},
		"no answer":   {errors.New("connection refused"), false},
		"nothing":     {nil, false},
	} {
		if got := notServed(c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
