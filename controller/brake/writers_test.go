package brake

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestWriterIsWhoWroteTheReferencesLast(t *testing.T) {
	at := func(minute int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 11, 24, 3, minute, 0, 0, time.UTC)}
	}
	entry := func(manager, fields string, at *metav1.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const references = `{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"1\"}":{}}}}`
	for name, c := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		"nobody":                       {nil, ""},
		"one who wrote other fields":   {[]metav1.ManagedFieldsEntry{entry("kubectl", `{"f:metadata":{"f:labels":{}},"f:data":{}}`, at(1))}, ""},
		"the last of two":              {[]metav1.ManagedFieldsEntry{entry("new", references, at(2)), entry("old", references, at(1)), entry("other", `{"f:data":{}}`, at(3))}, "new, 2026-11-24T03:02:00Z"},
		"without a time":               {[]metav1.ManagedFieldsEntry{entry("new", references, nil)}, ""},
		"fields that are not JSON":     {[]metav1.ManagedFieldsEntry{entry("new", `{`, at(1))}, ""},
		"a name that moves the cursor": {[]metav1.ManagedFieldsEntry{entry("a\x1b[2Jb", references, at(1))}, `a\x1b[2Jb, 2026-11-24T03:01:00Z`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := writerOf(c.fields).String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestMessageNamesWhoWroteMost(t *testing.T) {
	if got := by(map[types.UID]writer{"1": {}, "2": {}}); got != "" {
		t.Errorf("got %q although nobody is known", got)
	}
	got := by(map[types.UID]writer{"1": {manager: "b"}, "2": {manager: "a"}, "3": {manager: "b"}, "4": {}})
	if want := "The owner references of 2 of 4 examples were written by b."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
