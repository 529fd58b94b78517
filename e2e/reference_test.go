package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestOwnerInAnotherNamespaceDoesNotOwn(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm boss
		cm own  owners=(boss)
	`)
	other := w.beside()
	other.make(`cm stranger owners=(boss)`)
	w.awaitGone("stranger")
	w.mustStay("boss", "own")

	boss := w.of("boss")
	want := corev1.Event{
		Type: corev1.EventTypeWarning, Reason: "OwnerRefInvalidNamespace",
		Source: corev1.EventSource{Component: "garbage-collector-controller"},
		Message: fmt.Sprintf("ownerRef [v1/ConfigMap, namespace: %[1]s, name: boss, uid: %[2]s] does not exist in namespace %[1]q",
			other.namespace, boss.uid),
	}
	have := w.awaitEvent("stranger", want.Reason)
	if diff := cmp.Diff(want, corev1.Event{Type: have.Type, Reason: have.Reason, Source: have.Source, Message: have.Message}); diff != "" {
		t.Errorf("the Event differs (-want +have):\n%s", diff)
	}
	if kind := have.InvolvedObject.APIVersion + " " + have.InvolvedObject.Kind; kind != "v1 ConfigMap" {
		t.Errorf("the Event is about a %s", kind)
	}
	if n := told(w.events("stranger", want.Reason)); n != 1 {
		t.Errorf("the Event was recorded %d times", n)
	}
}

// TestNamespacedOwnerOfClusterScopedObjectIsKept: the reference says nothing of
// the owner's namespace, so no lookup could prove it absent.
func TestNamespacedOwnerOfClusterScopedObjectIsKept(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	role := "misplaced-" + w.namespace
	w.make(`cm boss`)
	w.make(`cr ` + role + ` owners=(boss)`)
	w.awaitEvent(role, "OwnerRefInvalidNamespace")
	if e := w.awaitEvent(role, "OwnerRefUnresolvable"); !strings.Contains(e.Message, "cluster-scoped object cannot have one") || e.Source.Component != "weir" {
		t.Errorf("%s says: %s", e.Source.Component, e.Message)
	}
	for i := range 3 { // each change is another occasion to say it again
		w.patch(role, fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, i))
	}
	w.mustStay(role, "boss")
	w.delete("boss", background)
	w.awaitGone("boss")
	w.mustStay(role)
	for _, reason := range []string{"OwnerRefInvalidNamespace", "OwnerRefUnresolvable"} {
		if n := told(w.events(role, reason)); n != 1 {
			t.Errorf("%s was recorded %d times", reason, n)
		}
	}
}

func TestReferenceToAnUnservedKindKeepsItsObjectAndNoOther(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*metav1.OwnerReference){
		"version": func(r *metav1.OwnerReference) { r.APIVersion = "v7" },
		"group":   func(r *metav1.OwnerReference) { r.APIVersion = "nobody.example.com/v1" },
		"kind":    func(r *metav1.OwnerReference) { r.Kind = "Nothing" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			w.make(`
				cm boss
				cm good  owners=(boss)
			`)
			bad := w.reference("boss")
			change(&bad)
			w.create("cm", "bad", []metav1.OwnerReference{bad})
			w.create("cm", "half", []metav1.OwnerReference{bad, w.reference("boss")})
			w.mustStay("boss", "good", "bad", "half")
			w.delete("boss", background)
			w.awaitGone("boss", "good")
			w.mustStay("bad", "half")
			for _, kept := range []string{"bad", "half"} {
				e := w.awaitEvent(kept, "OwnerRefUnresolvable")
				if want := fmt.Sprintf("the cluster serves no kind %q in %q", bad.Kind, bad.APIVersion); !strings.Contains(e.Message, want) {
					t.Errorf("%s: %q does not say: %s", kept, e.Message, want)
				}
				if e.Source.Component != "weir" || e.Type != corev1.EventTypeWarning {
					t.Errorf("%s: a %s of %s", kept, e.Type, e.Source.Component)
				}
			}
		})
	}
}

func TestMalformedReferencesToNothingAreCollected(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`cm boss`)
	boss := w.of("boss").uid
	malformed := map[string]struct{ name, uid string }{
		"no-uuid":       {"nobody", "not-a-uuid"},
		"slashes":       {"nobody", "a/b/../c"},
		"long-uid":      {"nobody", strings.Repeat("0123456789", 1000)},
		"shouted":       {"boss", strings.ToUpper(string(boss))},
		"braced":        {"boss", "{" + string(boss) + "}"},
		"spaced":        {"boss", " " + string(boss)},
		"zero":          {"nobody", "00000000-0000-0000-0000-000000000000"},
		"binary":        {"nobody", "\x01\u2028é"},
		"name-spaces":   {"a b", "1"},
		"name-query":    {"a?b=c&d#e", "2"},
		"name-unicode":  {"größe", "3"},
		"name-upper":    {"BOSS", string(boss)},
		"name-253":      {strings.Repeat("n", 253), "4"},
		"name-too-long": {strings.Repeat("n", 2000), "5"},
	}
	var names []string
	for name, r := range malformed {
		names = append(names, name)
		w.create("cm", name, []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: r.name, UID: types.UID(r.uid)}})
	}
	w.awaitGone(names...)
	w.mustStay("boss")
}

// TestNamesThatFitNoPathKeepTheirObjects: such an owner cannot exist, but neither
// can the API server be asked for it.
func TestNamesThatFitNoPathKeepTheirObjects(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm boss
		cm good owners=(boss)
	`)
	var names []string
	for name, owner := range map[string]string{"slash": "a/b", "percent": "100%", "dot": ".", "dots": "..", "root": "/", "escape": "a%2Fb"} {
		names = append(names, name)
		w.create("cm", name, []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: types.UID("uid-" + name)}})
	}
	for _, name := range names {
		if e := w.awaitEvent(name, "OwnerRefUnresolvable"); !strings.Contains(e.Message, "could not be read") {
			t.Errorf("%s: %s", name, e.Message)
		}
	}
	w.delete("boss", background)
	w.awaitGone("boss", "good")
	w.mustStay(names...)
}

func TestLongNamesCascade(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	boss, leaf := strings.Repeat("b", 253), strings.Repeat("l.", 126)+"l"
	w.make("cm " + boss)
	w.make("cm " + leaf + " owners=(" + boss + "!block)")
	w.mustStay(leaf)
	w.delete(boss, foreground)
	w.awaitGone(boss, leaf)
}
