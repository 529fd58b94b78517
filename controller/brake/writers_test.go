package brake

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1alpha1"
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
			if got := lastWriter(c.fields).String(); got != c.want {
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

func TestWriterOfAReferenceIsWhoHasIt(t *testing.T) {
	entry := func(manager string, minute int, uids ...string) metav1.ManagedFieldsEntry {
		fields := `{"f:metadata":{"f:ownerReferences":{".":{}`
		for _, uid := range uids {
			fields += `,"k:{\"uid\":\"` + uid + `\"}":{}`
		}
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields + "}}}"), Time: &metav1.Time{Time: time.Date(2026, 11, 24, 3, minute, 0, 0, time.UTC)}}
	}
	fields := []metav1.ManagedFieldsEntry{entry("right", 1, "a", "b"), entry("faulty", 2, "c"), entry("last", 3, "b"), entry("nothing", 4)}
	for owner, want := range map[types.UID]string{"a": "right", "b": "last", "c": "faulty", "d": graph.UnknownWriter, `"}`: graph.UnknownWriter} {
		if got := writerOf(fields, owner); got != want {
			t.Errorf("the reference to %s is by %q, want %q", owner, got, want)
		}
	}
	if got := writerOf(nil, "a"); got != graph.UnknownWriter {
		t.Errorf("of nothing: %q", got)
	}
}

// TestNamesOfHeldWriters are names of objects, of one writer each, and of no kind.
func TestNamesOfHeldWriters(t *testing.T) {
	seen := map[string]string{}
	another := strings.TrimPrefix(causeFor(graph.Cause{Writer: "A-b"}).String(), v1alpha1.HeldWrittenBy) // what is made of A-b, as a name of its own
	for _, writer := range []string{another, "0123abcd", "kube-controller-manager", "unknown", "a.b", "a-b", "A-b", "a b", "a/b", "-", "—", "é", strings.Repeat("x", 128), strings.Repeat("x", 127), "example.com/" + strings.Repeat("y", 110)} {
		name := causeFor(graph.Cause{Writer: writer}).String()
		if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 || strings.Count(name, ".") != 1 {
			t.Errorf("%q has the name %q: %v", writer, name, errs)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%q and %q have the name %q", writer, other, name)
		}
		seen[name] = writer
		h := &v1alpha1.HeldCollection{Status: v1alpha1.HeldCollectionStatus{Writer: writer}}
		if h.Name = name; causeOf(h) != (cause{writer: writer}) {
			t.Errorf("%q is read as %+v", name, causeOf(h))
		}
	}
}

// TestNamesWithoutEndCountTogether: a client that takes another name for each edit is counted as
// one, and costs no memory for each.
func TestNamesWithoutEndCountTogether(t *testing.T) {
	const limit = 20
	now := time.Now()
	l := NewLedger(Limits{Most: limit, Objects: limit, Share: 1}, now)
	now = now.Add(2 * settling)
	pods := schema.GroupResource{Resource: "pods"}
	went, names := 0, map[string]bool{}
	for i := range 3 * mostWriters {
		writer := l.named(fmt.Sprint("edit-", i))
		names[writer] = true
		a := graph.Action{Verb: graph.Delete, Object: graph.Ref{Kind: pods, UID: types.UID(fmt.Sprint(i))},
			Inferred: graph.Inference{Conclusion: graph.OwnerNotFound, Owners: schema.GroupResource{Group: "example.com", Resource: fmt.Sprint("kind", i)}, Edited: true, Writer: writer}}
		answer := l.Ask(now, a)
		for ; answer == Later; answer = l.Ask(now, a) {
			now = now.Add(Pause)
		}
		if answer == Weigh {
			answer, _ = l.Charge(now, a, Load{Weight: []graph.Counted{{Kind: pods, Count: 1}}, Sizes: counts{pods: 1000}})
		}
		if answer == Go {
			went++
		}
	}
	if most := mostWriters + limit; went != most {
		t.Errorf("%d went, want %d", went, most)
	}
	if len(names) != mostWriters+1 || !names[graph.UnknownWriter] {
		t.Errorf("%d names are counted, want %d and one for all others", len(names), mostWriters)
	}
}
