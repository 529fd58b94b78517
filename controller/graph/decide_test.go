package graph_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/script"
)

// decisions is the decision table, written so that exactly one row fits each situation: the order
// of the rows means nothing, and a situation that fits no row or two fails the test.
//
// P W O A U ? F N count the references by what their claims mean; "0" none, "+" at least one, "*"
// any. dependents: none, plain (they do not block), blocking, leads (a cycle in which the object
// has the lowest uid), follows (a cycle in which it has not). kinds: complete, listing, slow,
// failing, behind.
const decisions = `
accepted state      P W O A U ? F N dependents             kinds                   then

yes      *          * * * * * * * * *                      *                       wait

no       alive      * * + * + * * * *                      *                       look
no       alive      * * + * 0 + * * *                      *                       wait
no       alive      * * + * 0 0 + * *                      *                       unreadable-wait
no       alive      * * + * 0 0 0 * *                      *                       release OAW
no       deleting   * * + * * * * * *                      *                       release O
no       foreground * * + * * * * * *                      *                       release O
no       orphaning  * * + * * * * * *                      *                       release O

no       orphaning  * * 0 * * * * * -none                  *                       wait
no       orphaning  * * 0 * * * * * none                   -complete               wait
no       orphaning  * * 0 * * * * * none                   complete                unfinalize

no       foreground * * 0 * * * * * leads                  *                       unblock
no       foreground * * 0 * * * * * follows                *                       wait
no       foreground * * 0 * * * * * blocking               *                       wait
no       foreground * * 0 * * * * * none,plain             listing,slow            wait
no       foreground * * 0 * * * * * none,plain             complete,failing,behind unfinalize

no       deleting   * * 0 * * * * * *                      *                       keep
no       alive      0 0 0 0 0 0 0 0 *                      *                       keep

no       alive      + + 0 * * * * * *                      *                       release AW
no       alive      + 0 0 + * * * * *                      *                       release AW
no       alive      + 0 0 0 + * * * *                      *                       look-low
no       alive      + 0 0 0 0 * * * *                      *                       keep

no       alive      0 * 0 * + * * * *                      *                       look
no       alive      0 * 0 * 0 + * * *                      *                       wait
no       alive      0 * 0 * 0 0 + * *                      *                       unreadable
no       alive      0 * 0 * 0 0 0 + *                      *                       unresolvable

no       alive      0 + 0 * 0 0 0 0 leads,follows          *                       unblock
no       alive      0 + 0 * 0 0 0 0 plain,blocking         *                       foreground
no       alive      0 + 0 * 0 0 0 0 none                   *                       delete
no       alive      0 0 0 + 0 0 0 0 *                      *                       delete
`

const classes = "PWOAUQFN" // as the columns, ? being Q, and F what a lookup failed for

type row struct {
	text                              string
	accepted, state                   string
	counts                            [8]string
	dependents, kinds, then, releases string
}

func rows(t *testing.T) []row {
	var out []row
	for _, line := range strings.Split(decisions, "\n")[2:] {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 13 {
			t.Fatalf("row %q is too short", line)
		}
		r := row{text: line, accepted: f[0], state: f[1], dependents: f[10], kinds: f[11], then: f[12]}
		copy(r.counts[:], f[2:10])
		if len(f) == 14 {
			r.releases = f[13]
		}
		out = append(out, r)
	}
	return out
}

func fits(pattern, value string) bool {
	if not, ok := strings.CutPrefix(pattern, "-"); ok {
		return not != value
	}
	return pattern == "*" || slices.Contains(strings.Split(pattern, ","), value)
}

// situation is one combination of everything that a decision may depend on.
type situation struct {
	counts            [8]int
	state             string // alive, deleting, foreground, orphaning
	accepted          bool
	dependents, kinds string
	own               string // a garbage-collection finalizer that it has while alive
}

func (r row) fits(s situation) bool {
	for i, p := range r.counts {
		if p == "0" && s.counts[i] > 0 || p == "+" && s.counts[i] == 0 {
			return false
		}
	}
	return fits(r.accepted, map[bool]string{true: "yes", false: "no"}[s.accepted]) && fits(r.state, s.state) &&
		fits(r.dependents, s.dependents) && fits(r.kinds, s.kinds)
}

// TestEverySituationIsDecidedByItsRow enumerates the situations and compares each decision, down to
// the references and finalizers that stay, with the one row that fits.
func TestEverySituationIsDecidedByItsRow(t *testing.T) {
	table, used, n := rows(t), map[string]int{}, 0
	for _, kinds := range []string{"complete", "listing", "slow", "failing", "behind"} {
		st := newStage(kinds)
		each := func(s situation) {
			var fitting []row
			for _, r := range table {
				if r.fits(s) {
					fitting = append(fitting, r)
				}
			}
			if len(fitting) != 1 {
				t.Fatalf("%+v fits %d rows: %+v", s, len(fitting), fitting)
			}
			used[fitting[0].text]++
			n++
			if diff := st.try(s, fitting[0]); diff != "" {
				t.Errorf("%+v\nrow %s\n%s", s, fitting[0].text, diff)
			}
		}
		for _, counts := range tallies() {
			for _, dependents := range []string{"none", "plain", "blocking", "leads", "follows"} {
				if counts[1] == 0 && (dependents == "leads" || dependents == "follows") {
					continue // a cycle goes through a waiting owner
				}
				for _, state := range []string{"alive", "deleting", "foreground", "orphaning"} {
					each(situation{counts: counts, state: state, dependents: dependents, kinds: kinds})
				}
				each(situation{counts: counts, state: "alive", dependents: dependents, kinds: kinds, accepted: true})
				each(situation{counts: counts, state: "alive", dependents: dependents, kinds: kinds,
					own: metav1.FinalizerOrphanDependents})
				each(situation{counts: counts, state: "alive", dependents: dependents, kinds: kinds,
					own: metav1.FinalizerDeleteDependents})
				if t.Failed() {
					return
				}
			}
		}
		if err := st.g.Check(); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range table {
		if used[r.text] == 0 {
			t.Errorf("no situation fits row %s", r.text)
		}
	}
	t.Logf("%d situations, %d rows", n, len(table))
}

// tallies are the ways to have none, one or two references of each class: all with at most one of
// each, and of those with two of some, all with at most four in total.
func tallies() (all [][8]int) {
	for code := range 3 * 3 * 3 * 3 * 3 * 3 * 3 * 3 {
		var counts [8]int
		sum, two := 0, false
		for i, c := 0, code; i < len(classes); i, c = i+1, c/3 {
			counts[i] = c % 3
			sum += counts[i]
			two = two || counts[i] == 2
		}
		if !two || sum <= 4 {
			all = append(all, counts)
		}
	}
	return all
}

var (
	podKind   = schema.GroupResource{Resource: "pods"}
	mapKind   = schema.GroupResource{Resource: "configmaps"}
	gizmoKind = schema.GroupResource{Group: "example.com", Resource: "gizmos"}
)

// stage is a graph with two owners of each class, on which one object after the other is tried.
type stage struct {
	g     *graph.Graph
	tried int
}

func newStage(kinds string) *stage {
	st := &stage{g: graph.New()}
	gizmo := graph.Resource{Group: "example.com", Resource: "gizmos", Kind: "Gizmo", Version: "v1",
		Versions: []string{"v1"}, Namespaced: true, Collected: true}
	st.g.Apply(graph.Serving{Resources: append(script.Usual(), gizmo)})
	for _, k := range st.g.Stats().Kinds {
		if gr := k.GroupResource(); gr != gizmoKind || kinds == "complete" || kinds == "behind" {
			st.g.Apply(graph.ListBegins{Kind: gr})
			st.g.Apply(graph.ListEnds{Kind: gr})
		}
	}
	switch kinds {
	case "failing":
		st.g.Apply(graph.ListFailed{Kind: gizmoKind, Reason: "it is the test's wish"})
	case "slow":
		st.g.Apply(graph.ListSlow{Kind: gizmoKind, Reason: "it is the test's wish"})
	case "behind":
		st.g.Apply(graph.FellBehind{Kind: gizmoKind, Reason: "it is the test's wish"})
	}
	keeper := &graph.Object{Kind: podKind, UID: "keeper", Namespace: "x", Name: "keeper", ResourceVersion: "1"}
	for i := range classes {
		for n := range 2 {
			keeper.Owners = append(keeper.Owners, ownerRef(classes[i], n))
		}
	}
	st.g.Apply(graph.Observed{Object: keeper})
	for n := range 2 {
		st.owner('P', n, false)
		st.owner('W', n, true, metav1.FinalizerDeleteDependents)
		st.owner('O', n, true, metav1.FinalizerOrphanDependents)
		st.owner('A', n, false)
		st.g.Apply(graph.Gone{Kind: mapKind, UID: ownerRef('A', n).UID})
		for _, class := range []byte("QF") {
			r := ownerRef(class, n)
			claim := graph.Claim{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: "x", Name: r.Name, UID: r.UID,
				Resource: mapKind, Namespaced: true}
			st.g.Apply(graph.LookupStarted{Claim: claim})
			if class == 'F' {
				st.g.Apply(graph.LookupAnswered{Claim: claim, Answer: graph.Unanswered, Reason: "it is the test's wish"})
			}
		}
	}
	return st
}

func (st *stage) owner(class byte, n int, deleting bool, finalizers ...string) {
	r := ownerRef(class, n)
	st.g.Apply(graph.Observed{Object: &graph.Object{
		Kind: mapKind, UID: r.UID, Namespace: "x", Name: r.Name, ResourceVersion: "1", Deleting: deleting,
		Finalizers: finalizers,
	}})
}

func ownerRef(class byte, n int) metav1.OwnerReference {
	r := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprintf("%c%d", class, n)}
	switch class {
	case 'N':
		r.Kind = "Unheard"
	case 'W': // blocking, and in no cycle
		r.BlockOwnerDeletion = ptr(true)
	}
	r.UID = types.UID(r.Name)
	return r
}

func ptr[T any](v T) *T { return &v }

// try puts one object on the stage, takes it down again, and returns how its decision differs from
// what the row says.
func (st *stage) try(s situation, r row) string {
	st.tried++
	o := &graph.Object{
		Kind: podKind, Namespace: "x", Name: "m", ResourceVersion: "7",
		UID: types.UID(fmt.Sprintf("m%d", st.tried)), Finalizers: []string{"example.com/first"},
	}
	self := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "m", UID: o.UID}
	dependent := &graph.Object{Kind: podKind, Namespace: "x", Name: "d", ResourceVersion: "8",
		UID: types.UID(fmt.Sprintf("d%d", st.tried))}
	var class string // of each reference
	for i := range classes {
		for n := range s.counts[i] {
			o.Owners = append(o.Owners, ownerRef(classes[i], n))
			class += classes[i : i+1]
		}
	}
	switch s.dependents {
	case "leads", "follows": // the first waiting owner is one that it blocks, and that blocks it
		dependent.UID = types.UID(map[string]string{"leads": "z", "follows": "a"}[s.dependents] + string(dependent.UID))
		dependent.Deleting, dependent.Finalizers = true, []string{metav1.FinalizerDeleteDependents}
		i := strings.IndexByte(class, 'W')
		o.Owners[i] = metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "d", UID: dependent.UID,
			BlockOwnerDeletion: ptr(true)}
		self.BlockOwnerDeletion = ptr(true)
	case "blocking":
		self.BlockOwnerDeletion = ptr(true)
	}
	dependent.Owners = []metav1.OwnerReference{self}
	o.Deleting = s.state != "alive"
	gc := map[string]string{"alive": s.own, "foreground": metav1.FinalizerDeleteDependents,
		"orphaning": metav1.FinalizerOrphanDependents}[s.state]
	if gc != "" {
		o.Finalizers = append(o.Finalizers, gc)
	}
	o.Finalizers = append(o.Finalizers, "example.com/last")

	if s.dependents != "none" {
		st.g.Apply(graph.Observed{Object: dependent})
		defer st.g.Apply(graph.Gone{Kind: podKind, UID: dependent.UID})
	}
	st.g.Apply(graph.Observed{Object: o})
	defer st.g.Apply(graph.Gone{Kind: podKind, UID: o.UID})
	ref := graph.Ref{Kind: podKind, Namespace: "x", Name: "m", UID: o.UID, ResourceVersion: "7"}
	if s.accepted {
		st.g.Apply(graph.Accepted{Action: graph.Action{Verb: graph.Delete, Object: ref}})
	}

	got := st.g.Decide(o.UID)
	want := graph.Action{Object: ref}
	stay := func(goes string) []metav1.OwnerReference {
		refs := []metav1.OwnerReference{}
		for i := range o.Owners {
			if !strings.Contains(goes, class[i:i+1]) {
				refs = append(refs, o.Owners[i])
			}
		}
		return refs
	}
	switch r.then {
	case "wait":
		want.Verb = graph.Wait
	case "keep":
	case "unresolvable":
		want.Unresolvable = graph.UnservedKind
	case "unreadable":
		want.Unresolvable = graph.Unreadable
	case "unreadable-wait":
		want.Verb, want.Unresolvable = graph.Wait, graph.Unreadable
	case "look", "look-low":
		want.Verb, want.LowPriority = graph.Lookup, r.then == "look-low"
		want.Claim = graph.Claim{APIVersion: "v1", Kind: "ConfigMap", Namespace: "x", Name: "U0", UID: "U0",
			Resource: mapKind, Namespaced: true, Lists: 1}
	case "release":
		want.Verb, want.Owners = graph.Release, stay(r.releases)
	case "unfinalize":
		want.Verb, want.Finalizer, want.Finalizers = graph.Unfinalize, gc, []string{"example.com/first", "example.com/last"}
	case "unblock":
		want.Verb, want.Owners = graph.Unblock, stay("")
		want.Owners[strings.IndexByte(class, 'W')].BlockOwnerDeletion = new(bool)
	case "foreground":
		want.Verb, want.Propagation = graph.Delete, metav1.DeletePropagationForeground
	case "delete":
		want.Verb = graph.Delete
		want.Propagation = map[string]metav1.DeletionPropagation{
			"":                               metav1.DeletePropagationBackground,
			metav1.FinalizerOrphanDependents: metav1.DeletePropagationOrphan,
			metav1.FinalizerDeleteDependents: metav1.DeletePropagationForeground,
		}[s.own]
	default:
		return fmt.Sprintf("the row has an unknown consequence %q", r.then)
	}
	if got.Why == "" {
		return "the decision does not say why"
	}
	if got.Verb == graph.Delete && !strings.Contains(got.Why, got.Cause.Kind+" "+got.Cause.Namespace+"/"+got.Cause.Name) {
		return fmt.Sprintf("the cause is %v, and the reason %q", got.Cause, got.Why)
	}
	if by := len(got.AwaitedBy); got.Verb == graph.Delete && by != s.counts[strings.IndexByte(classes, 'W')] {
		return fmt.Sprintf("it is awaited by %v", got.AwaitedBy)
	}
	got.Cause, got.AwaitedBy, got.Dependents = want.Cause, nil, 0
	if !got.Request() {
		want.Object, got.Object = graph.Ref{}, graph.Ref{} // it is never sent
	}
	got.Why, got.Unseen, got.Mismatched = "", "", want.Mismatched // words
	if reflect.DeepEqual(want, got) {
		return "" // cmp takes most of the time
	}
	return cmp.Diff(want, got)
}
