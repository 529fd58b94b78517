package brake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

// TestMessageSaysWhatIsHeldAndWhatIsNotKnown in each state of a record.
func TestMessageSaysWhatIsHeldAndWhatIsNotKnown(t *testing.T) {
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	kind, faulty := cause{kind: widgets}, cause{writer: "faulty\x1b[2J"}
	some := findings{uids: []types.UID{"a", "b"}, weight: counts{{Resource: "pods"}: 7}, because: map[graph.Conclusion]int{graph.OwnerNotFound: 1, graph.DefinitionGone: 1},
		why: "more than 1 object would go", digest: "feed", complete: true, writers: map[types.UID]writer{"a": {manager: "helm"}}}
	part := some
	part.complete, part.going = false, 3
	for name, c := range map[string]struct {
		of   cause
		seen findings
		want []string
		not  string
	}{
		"nothing":                    {kind, findings{}, []string{"Nothing is held any more."}, "Held"},
		"owners that are not known":  {kind, findings{open: 4}, []string{"for 4 owners it is not known whether they exist."}, "wrote"},
		"references of no writer":    {faulty, findings{open: 4}, []string{"for 4 owners it is not known whether they exist, or which client wrote the references to them."}, "Held"},
		"what goes by a decision":    {kind, findings{going: 3, open: 4}, []string{"decided to delete, 3 objects are not gone yet. Nothing else waits for a decision."}, "not known"},
		"objects":                    {kind, some, []string{"Held: 2 objects, and 7 with all", "owners of the kind widgets.example.com", "1: their owners were not found", "; 1: their owners went because the definition", "kubectl patch held widgets.example.com ", `"digest":"feed"`, "by helm"}, "at least"},
		"more than could be counted": {kind, part, []string{"3 objects are not gone yet. Held: 2 objects, and at least 7 with all"}, "Nothing else"},
		"edits of a client":          {faulty, some, []string{`owner references that faulty\x1b[2J wrote into existing objects`, "kubectl patch held written-by.faulty--2j-"}, "\x1b"},
		"edits of no known client":   {cause{writer: graph.UnknownWriter}, some, []string{"edits of owner references by clients that managedFields do not name"}, "by helm"},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&record{cause: c.of, seen: c.seen}).message()
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in: %s", want, got)
				}
			}
			if strings.Contains(got, c.not) {
				t.Errorf("%q is in: %s", c.not, got)
			}
		})
	}
}

// TestStatusIsWithinItsSchema however long names are and however many kinds there are, or the API
// server would refuse it, and no user be told.
func TestStatusIsWithinItsSchema(t *testing.T) {
	r := &record{cause: cause{writer: strings.Repeat("ü", 300)}, outcome: strings.Repeat("é", 3000), seen: findings{weight: counts{}, because: map[graph.Conclusion]int{}, writers: map[types.UID]writer{}}}
	for i := range 30 {
		r.seen.weight[schema.GroupResource{Resource: fmt.Sprintf("kind%02d", i)}] = i/2 + 1
	}
	for i := range mostSamples {
		uid := types.UID(fmt.Sprint(i))
		r.seen.samples = append(r.seen.samples, graph.Inferred{Ref: graph.Ref{UID: uid, Name: strings.Repeat("é", 700)}, Why: strings.Repeat("é", 2000)})
		r.seen.writers[uid] = writer{strings.Repeat("é", 300), time.Unix(0, 0)}
	}
	st := r.status()
	for what, c := range map[string]struct {
		text string
		most int
	}{"message": {st.Message, 2048}, "writer": {st.Writer, 128}, "object": {st.Samples[9].Object, 640}, "why": {st.Samples[9].Why, 1024}, "writtenBy": {st.Samples[9].WrittenBy, 256}} {
		if n := utf8.RuneCountInString(c.text); n != c.most || !utf8.ValidString(c.text) || !strings.HasSuffix(c.text, "…") {
			t.Errorf("%s has %d characters, want %d, the last for what is left out", what, n, c.most)
		}
	}
	if len(st.Kinds) != mostKinds || st.Kinds[0].Resource != "kind28" || st.Kinds[1].Resource != "kind29" || st.Kinds[19].Objects != 6 {
		t.Errorf("kinds, most objects first: %v", st.Kinds)
	}
}

// TestAStatusLeavesNothingOfTheOneBefore: it is merged into what is there, so that each field which
// it does not have must be taken away.
func TestAStatusLeavesNothingOfTheOneBefore(t *testing.T) {
	since := metav1.NewTime(time.Unix(0, 0))
	full := v1alpha1.HeldCollectionStatus{Conclusion: "c", Message: "m", Writer: "w", Since: &since, Digest: "d", Held: 1, Objects: 2, Kinds: []v1alpha1.HeldKind{{Resource: "pods"}}, Samples: []v1alpha1.HeldSample{{Object: "o"}}}
	text, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	var before map[string]any
	if err := json.Unmarshal(text, &before); err != nil {
		t.Fatal(err)
	}
	patch, err := patchOf(&v1alpha1.HeldCollectionStatus{Since: &since, Message: "Nothing is held any more."})
	if err != nil {
		t.Fatal(err)
	}
	for field := range before {
		value, is := patch[field]
		if kept := field == "since" || field == "message"; !is || (value != nil) != kept {
			t.Errorf("%s becomes %v", field, value)
		}
	}
	if diff := cmp.Diff(len(before), len(patch)); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// TestAnObjectWaitsUntilItIsReadWhoWrote: an edit by a client that is not known would count for
// none. What is read of another object, or of one that was repaired meanwhile, says nothing.
func TestAnObjectWaitsUntilItIsReadWhoWrote(t *testing.T) {
	live := func(uid, owner types.UID) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid, OwnerReferences: []metav1.OwnerReference{{UID: owner}}}}
	}
	for name, c := range map[string]struct {
		live   *metav1.PartialObjectMetadata
		err    error
		writer string // "" if it is asked about again later
	}{
		"it cannot be read":        {nil, errors.New("not now"), ""},
		"another has its name":     {live("q", "o"), nil, ""},
		"the reference is gone":    {live("p", "other"), nil, ""},
		"managedFields say no one": {live("p", "o"), nil, graph.UnknownWriter},
	} {
		b := New(Options{Limits: DefaultLimits, Store: follow.NewStore(), Registry: prometheus.NewRegistry(), Log: logr.Discard(),
			Read: func(context.Context, graph.Ref) (*metav1.PartialObjectMetadata, error) { return c.live, c.err }})
		a := graph.Action{Object: graph.Ref{UID: "p"}, Inferred: graph.Inference{Conclusion: graph.OwnerNotFound, Edited: true, Reference: "o"}}
		if yes, again := b.Allows(t.Context(), a); yes || again != Pause {
			t.Errorf("%s: it goes: %t, or is asked about again after %s", name, yes, again)
		}
		if signed := b.signed(t.Context(), &a); signed != (c.writer != "") || a.Inferred.Writer != c.writer {
			t.Errorf("%s: it is known: %t, %q", name, signed, a.Inferred.Writer)
		}
	}
}

// TestGhostIsNotAskedAboutForEver: who wrote the references of an object is not to be known when it
// is gone, and its watch may never say so. The watch is given a moment, and what the API server
// does not say for certain is no end.
func TestGhostIsNotAskedAboutForEver(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	absent := apierrors.NewNotFound(pods, "p")
	for name, c := range map[string]struct {
		live   *metav1.PartialObjectMetadata
		err    error
		gone   bool
		rewind bool // the history goes back during each read
		after  int  // how often it is asked about until the graph does not have it; 0: it stays
	}{
		"it is gone":            {err: absent, gone: true, after: 2},
		"another has its name":  {live: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "q"}}, gone: true, after: 2},
		"that is not certain":   {err: absent},
		"it cannot be read":     {err: errors.New("not now"), gone: true},
		"the history goes back": {err: absent, gone: true, rewind: true},
	} {
		store := follow.NewStore()
		store.Apply(graph.Serving{Resources: []graph.Resource{{Resource: "pods", Kind: "Pod", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}}},
			graph.Observed{Object: &graph.Object{Kind: pods, Namespace: "shop", Name: "p", UID: "p", ResourceVersion: "1"}})
		b := New(Options{Limits: DefaultLimits, Store: store, Registry: prometheus.NewRegistry(), Log: logr.Discard(),
			Gone: func(context.Context, graph.Ref) bool { return c.gone },
			Read: func(context.Context, graph.Ref) (*metav1.PartialObjectMetadata, error) {
				if c.rewind {
					store.Apply(graph.Rewound{Reason: "test"}, graph.Observed{Object: &graph.Object{Kind: pods, Namespace: "shop", Name: "p", UID: "p", ResourceVersion: "1"}})
				}
				return c.live, c.err
			}})
		a := graph.Action{Object: graph.Ref{Kind: pods, Namespace: "shop", Name: "p", UID: "p"}, Inferred: graph.Inference{Conclusion: graph.OwnerNotFound, Edited: true, Reference: "o"}}
		after := 0
		for n := 1; n <= 5 && after == 0; n++ {
			if yes, again := b.Allows(t.Context(), a); yes || again != Pause {
				t.Errorf("%s: it goes: %t, or is asked about again after %s", name, yes, again)
			}
			if _, there := store.Find("p"); !there {
				after = n
			}
		}
		if after != c.after {
			t.Errorf("%s: the graph does not have it any more after %d, want %d", name, after, c.after)
		}
	}
}

// TestObjectThatCannotBeReadIsSaidToWait, once a minute: nothing else tells that it is garbage and
// stays.
func TestObjectThatCannotBeReadIsSaidToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		b := New(Options{Limits: DefaultLimits, Store: follow.NewStore(), Registry: prometheus.NewRegistry(),
			Log: funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{}),
			Read: func(context.Context, graph.Ref) (*metav1.PartialObjectMetadata, error) {
				return nil, errors.New("the backend has no get")
			}})
		a := graph.Action{Object: graph.Ref{Kind: schema.GroupResource{Resource: "pods"}, Namespace: "shop", Name: "p", UID: "p"}, Inferred: graph.Inference{Conclusion: graph.OwnerNotFound, Edited: true, Reference: "o"}}
		for range 150 {
			if yes, again := b.Allows(t.Context(), a); yes || again != Pause {
				t.Errorf("it goes: %t, or is asked about again after %s", yes, again)
			}
			time.Sleep(Pause)
		}
		if len(said) != 3 || !strings.Contains(said[0], "shop") || !strings.Contains(said[0], "the backend has no get") {
			t.Errorf("in 150 s it was said: %q", said)
		}
	})
}
