package shadow

import (
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
)

// scene is a cluster with one kind, at which a Shadow looks.
type scene struct {
	*testing.T
	*Shadow
}

func newScene(t *testing.T) *scene {
	s := &scene{t, New(Options{Store: follow.NewStore(), Registry: prometheus.NewRegistry(), Log: logr.Discard(), Ready: func() error { return nil }})}
	s.Store.Apply(
		graph.Serving{Resources: []graph.Resource{{Group: "", Version: "v1", Versions: []string{"v1"}, Kind: "ConfigMap", Resource: "configmaps", Namespaced: true, Deletable: true, Collected: true}}},
		graph.ListBegins{Kind: configMaps}, graph.ListEnds{Kind: configMaps})
	return s
}

// see shows an object, as a watch does: deleting are its finalizers if it is being deleted.
func (s *scene) see(name string, deleting []string, owners ...metav1.OwnerReference) {
	o := &graph.Object{Kind: configMaps, UID: types.UID(name), Namespace: "shop", Name: name, ResourceVersion: "1", Owners: owners,
		Deleting: deleting != nil, Finalizers: deleting}
	then := s.Showing(o)
	s.Store.Apply(graph.Observed{Object: o})
	if then != nil {
		then()
	}
	s.decide(name)
}

func (s *scene) gone(name string) {
	s.Going(types.UID(name))
	s.Store.Apply(graph.Gone{Kind: configMaps, UID: types.UID(name)})
}

// decide does what a worker does; lookups are answered with a 404.
func (s *scene) decide(name string) graph.Action {
	for range 10 {
		a := s.Store.Decide(types.UID(name))
		s.Decided(types.UID(name), a)
		if a.Verb != graph.Lookup {
			return a
		}
		s.Store.Apply(graph.LookupAnswered{Claim: a.Claim, Answer: graph.Absent})
	}
	s.Fatalf("%s is looked up again and again", name)
	return graph.Action{}
}

// purpose is on which purpose a decision is not carried out, if it is not.
func (s *scene) purpose(name string) string {
	s.Helper()
	a := s.decide(name)
	d := s.ledger.open[types.UID(name)]
	if d == nil {
		s.Fatalf("nothing is to be done about %s: %s", name, a)
	}
	if d.purpose != "" {
		return d.purpose
	}
	purpose := ""
	s.Store.Read(func(g *graph.Graph) {
		v, _ := g.Find(types.UID(name))
		purpose = onPurpose(g, a, v)
	})
	return purpose
}

func own(name string, change ...func(*metav1.OwnerReference)) metav1.OwnerReference {
	r := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: types.UID(name)}
	for _, f := range change {
		f(&r)
	}
	return r
}

func blocking(r *metav1.OwnerReference) { r.BlockOwnerDeletion = new(true) }
func unserved(r *metav1.OwnerReference) { r.Kind = "Nothing" }
func misnamed(r *metav1.OwnerReference) { r.Name = "another" }

var (
	foreground = []string{metav1.FinalizerDeleteDependents}
	orphaning  = []string{metav1.FinalizerOrphanDependents}
	plain      = []string{"example.com/hold"}
)

// TestWhatIsDifferentOnPurposeIsKnownByWhatMakesIt, and what is nearly the same is not.
func TestWhatIsDifferentOnPurposeIsKnownByWhatMakesIt(t *testing.T) {
	for name, c := range map[string]struct {
		of   string
		when func(s *scene)
		want string
	}{
		"a dead reference beside an unresolvable one": {"leaf", func(s *scene) {
			s.see("lives", nil)
			s.see("dies", nil)
			s.see("leaf", nil, own("lives"), own("dies"), own("x", unserved))
			s.gone("dies")
		}, besideUnresolvable},
		"a dead reference": {"leaf", func(s *scene) {
			s.see("lives", nil)
			s.see("dies", nil)
			s.see("leaf", nil, own("lives"), own("dies"))
			s.gone("dies")
		}, ""},
		"a foreground owner whose uid is named, and no more": {"owner", func(s *scene) {
			s.see("owner", nil)
			s.see("leaf", nil, own("owner", blocking, misnamed))
			s.see("owner", foreground)
		}, unsoundBlocks},
		"a foreground owner that is named, and not blocked": {"owner", func(s *scene) {
			s.see("owner", nil)
			s.see("leaf", nil, own("owner", misnamed))
			s.see("owner", foreground)
		}, ""},
		"a foreground owner without dependents": {"owner", func(s *scene) { s.see("owner", foreground) }, ""},
		"an object that owns itself":            {"own", func(s *scene) { s.see("own", foreground, own("own", blocking)) }, ownBlock},
		"two that wait for each other": {"a", func(s *scene) {
			s.see("a", foreground, own("b", blocking))
			s.see("b", foreground, own("a", blocking))
		}, brokenCycle},
		"a foreground owner that two references to it blocked, of which the last did not": {"owner", func(s *scene) {
			s.see("owner", nil)
			s.see("leaf", plain, own("owner", blocking), own("owner"))
			s.see("owner", foreground)
			s.see("leaf", plain)
		}, nothingBlocks},
		"the same, of a dependent that stays": {"owner", func(s *scene) {
			s.see("owner", nil)
			s.see("leaf", nil, own("owner", blocking), own("owner"))
			s.see("owner", foreground)
			s.see("leaf", nil)
		}, nothingBlocks},
		"the same, of a dependent that goes": {"owner", func(s *scene) {
			s.see("owner", nil)
			s.see("leaf", nil, own("owner", blocking), own("owner"))
			s.see("owner", foreground)
			s.gone("leaf")
		}, ""},
		"the same, and another blocked it for longer": {"owner", func(s *scene) {
			s.see("owner", nil)
			s.see("leaf", nil, own("owner", blocking), own("owner"))
			s.see("other", nil, own("owner", blocking))
			s.see("owner", foreground)
			s.see("leaf", nil)
			s.see("other", nil)
		}, ""},
		"a foreground owner that two references to it blocked, of which the last did": {"owner", func(s *scene) {
			s.see("owner", nil)
			s.see("leaf", nil, own("owner"), own("owner", blocking))
			s.see("owner", foreground)
			s.see("leaf", nil)
		}, ""},
		"a dependent in which another name is put to a uid": {"leaf", func(s *scene) {
			s.see("lives", nil)
			s.see("leaf", nil, own("lives"))
			s.see("leaf", nil, own("lives", misnamed))
		}, judgedWhenWritten},
		"a dependent whose owner goes": {"leaf", func(s *scene) {
			s.see("dies", nil)
			s.see("leaf", nil, own("dies"))
			s.gone("dies")
		}, ""},
		"a dependent of one that never was": {"leaf", func(s *scene) { s.see("leaf", nil, own("never")) }, ""},
		"a dependent that gets one that never was": {"leaf", func(s *scene) {
			s.see("leaf", nil)
			s.see("leaf", nil, own("never"))
		}, ""},
		"a dependent whose other owner goes, after a write": {"leaf", func(s *scene) {
			s.see("dies", nil)
			s.see("leaf", nil)
			s.see("leaf", nil, own("dies"))
			s.gone("dies")
		}, ""},
		"a dependent that is written during foreground deletion": {"leaf", func(s *scene) {
			s.see("owner", foreground)
			s.see("leaf", nil, own("owner"))
		}, duringForeground},
		"a dependent written after its owner went with orphan": {"leaf", func(s *scene) {
			s.see("lives", nil)
			s.see("owner", orphaning)
			s.gone("owner")
			s.see("leaf", nil, own("lives"), own("owner"))
		}, afterOrphaning},
		"a dependent that is being deleted, of an owner that went with orphan": {"leaf", func(s *scene) {
			s.see("owner", orphaning)
			s.see("leaf", plain, own("owner"))
			s.gone("owner")
		}, afterOrphaning},
		"a dependent of an owner that orphans now": {"leaf", func(s *scene) {
			s.see("owner", orphaning)
			s.see("leaf", nil, own("owner"))
		}, ""},
		"a dependent of one that orphans now, and of one that did": {"leaf", func(s *scene) {
			s.see("went", orphaning)
			s.gone("went")
			s.see("owner", orphaning)
			s.see("leaf", nil, own("owner"), own("went"))
		}, ""},
		"a dependent of a foreground deletion": {"leaf", func(s *scene) {
			s.see("owner", nil)
			s.see("leaf", nil, own("owner"))
			s.see("owner", foreground)
		}, ""},
		"a dependent written during foreground deletion, that names another by its uid": {"leaf", func(s *scene) {
			s.see("owner", foreground)
			s.see("lives", nil)
			s.see("leaf", nil, own("owner"), own("lives", misnamed))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			c.when(s)
			if have := s.purpose(c.of); have != c.want {
				t.Errorf("%q, want %q", have, c.want)
			}
		})
	}
}

// TestADeleteIsSeenWhenItBegins: with a finalizer an object is there for long, without one it may
// be gone before a worker looks.
func TestADeleteIsSeenWhenItBegins(t *testing.T) {
	for name, owner := range map[string]string{"others": "lives", "done": "dies"} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.see(owner, nil)
			s.see("leaf", nil, own(owner))
			if owner == "dies" {
				s.gone(owner)
				s.decide("leaf")
			}
			o := &graph.Object{Kind: configMaps, UID: "leaf", Namespace: "shop", Name: "leaf", ResourceVersion: "2", Owners: []metav1.OwnerReference{own(owner)}, Deleting: true, Finalizers: plain}
			if then := s.Showing(o); then != nil {
				t.Error("there is more to see")
			}
			s.Store.Apply(graph.Observed{Object: o})
			s.gone("leaf") // before a worker has looked
			r := s.now()
			if got := r.Deletes[name] + r.Decisions["delete"][name]; got != 1 || len(r.Differences) > 0 {
				t.Errorf("%d deletes are %s, want 1: %+v", got, name, r)
			}
		})
	}
}

func TestEachPurposeIsNamedInTheDesign(t *testing.T) {
	text, err := os.ReadFile("../../../DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	design := strings.Join(strings.Fields(string(text)), " ")
	for _, name := range []string{besideUnresolvable, judgedWhenWritten, duringForeground, unsoundBlocks, nothingBlocks, ownBlock, brokenCycle, afterOrphaning} {
		if !strings.Contains(design, name) {
			t.Errorf("DESIGN.md does not say: %s", name)
		}
	}
}
