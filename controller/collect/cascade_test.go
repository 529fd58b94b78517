package collect

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// records is what cascades tell.
type records struct {
	*cascades
	reported []string
}

func newRecords(log logr.Logger) *records {
	r := &records{}
	r.cascades = newCascades(func(root graph.Claim, text, _ string) {
		r.reported = append(r.reported, root.String()+": "+text)
	}, log)
	return r
}

// collect deletes an object because of an owner.
func (r *records) collect(uid, owner string, dependents int32) string {
	return r.collected(graph.Action{
		Verb: graph.Delete, Object: graph.Ref{Kind: fixture.ConfigMaps, Namespace: "x", Name: uid, UID: types.UID(uid)},
		Dependents: dependents,
		Cause: graph.Claim{APIVersion: "v1", Kind: "Thing", Namespace: "x", Namespaced: true, Name: owner,
			UID: types.UID(owner)},
	}).String()
}

// expect makes sure that this was told since the last time, and nothing else.
func (r *records) expect(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(r.reported)
	if !slices.Equal(r.reported, want) {
		t.Errorf("told %q, want %q", r.reported, want)
	}
	r.reported = nil
}

func TestCascadeIsToldOnItsRootOnceItRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecords(logr.Discard())
		r.collect("a", "boss", 2)
		<-time.After(2 * time.Second)
		if root := r.collect("leaf-1", "a", 0); root != "Thing x/boss" {
			t.Errorf("the root of what fell with a dependent is %s", root)
		}
		r.collect("leaf-2", "a", 0)
		r.collect("only", "other", 0)
		<-time.After(quiet - time.Second)
		r.report(quiet)
		r.expect(t) // it may go on
		<-time.After(time.Second)
		r.report(quiet)
		r.expect(t,
			"Thing x/boss: 3 objects that it owned, directly or not, were deleted by garbage collection within 2s: 3 configmaps",
			"Thing x/other: 1 object that it owned was deleted by garbage collection within 1s: 1 configmaps")
		r.report(quiet)
		r.expect(t)

		<-time.After(remembered / 2)
		r.collect("leaf-3", "a", 0) // was held until now
		r.report(0)
		r.expect(t,
			"Thing x/boss: 4 objects that it owned, directly or not, were deleted by garbage collection within 5m7s: 4 "+
				"configmaps")
		for range 2 {
			<-time.After(remembered)
			r.report(quiet)
		}
		if len(r.of)+len(r.old)+len(r.open) > 0 {
			t.Errorf("%d objects and %d cascades are remembered after %s", len(r.of)+len(r.old), len(r.open), 2*remembered)
		}
		r.collect("leaf-4", "a", 0)
		r.report(0)
		r.expect(t, "Thing x/a: 1 object that it owned was deleted by garbage collection within 1s: 1 configmaps")
	})
}

// TestCascadesAreBounded: what many cascades take is given back, and not all are told as Events.
func TestCascadesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		r := newRecords(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
		for n := range mostRemembered {
			r.collect("x", fmt.Sprintf("owner-%d", n), 0)
		}
		r.report(0)
		if len(r.reported) != cascadeBurst || len(lines) != mostRemembered {
			t.Errorf("%d Events at once, want %d, and %d lines in the log", len(r.reported), cascadeBurst, len(lines))
		}
		if r.collect("y", "late", 0); len(r.of) != 1 || len(r.old) != mostRemembered {
			t.Errorf("%d and %d are remembered, want one and those that were told", len(r.of), len(r.old))
		}
	})
}

// TestCascadeTellsTheFirstObjects: names are in a bound.
func TestCascadeTellsTheFirstObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecords(logr.Discard())
		var names string
		r.record = func(_ graph.Claim, text, collected string) { r.reported, names = append(r.reported, text), collected }
		for i := range mostNames + 5 {
			r.collect(fmt.Sprintf("leaf-%d", i), "boss", 0)
		}
		<-time.After(quiet + time.Second)
		r.report(quiet)
		r.expect(t,
			"55 objects that it owned, directly or not, were deleted by garbage collection within 1s: 55 configmaps")
		if n := strings.Count(names, `"uid"`); n != mostNames ||
			!strings.HasPrefix(names, `[{"kind":"configmaps","namespace":"x","name":"leaf-0","uid":"leaf-0"},`) {
			t.Errorf("%d objects are named: %s", n, names)
		}
		if r.names != mostNames {
			t.Errorf("%d names are remembered, want %d", r.names, mostNames)
		}
		<-time.After(remembered)
		r.report(quiet)
		if r.names != 0 {
			t.Errorf("%d names are remembered of cascades that are not", r.names)
		}
	})
}
