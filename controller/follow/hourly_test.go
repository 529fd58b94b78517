package follow

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// TestHourlyListRepairsAndCountsWhatTheWatchDidNotShow breaks the graph behind the back of its
// watches. What changes meanwhile is no fault.
func TestHourlyListRepairsAndCountsWhatTheWatchDidNotShow(t *testing.T) {
	configMap := func(name, version string) *graph.Object {
		return &graph.Object{Kind: fixture.ConfigMaps, UID: types.UID("uid-" + name), Namespace: "shop", Name: name,
			ResourceVersion: version}
	}
	for name, c := range map[string]struct {
		damage func(*watching)
		want   map[string]float64
	}{
		"nothing": {func(*watching) {}, nil},
		"objects that are written all the time": {func(e *watching) {
			for i := range 200 {
				time.AfterFunc(time.Duration(i)*time.Minute, func() { e.configMap("plain", ""); e.configMap("new", "") })
			}
		}, nil},
		"an object that is not there": {func(e *watching) {
			e.store.Apply(graph.Observed{Object: configMap("nobody", "2")})
		}, nil},
		"an object that is lost": {func(e *watching) {
			e.store.Apply(graph.Unlisted{Kind: fixture.ConfigMaps, UID: "uid-plain"})
		}, map[string]float64{"configmaps missing": 1}},
		"an object as it was before": {func(e *watching) {
			e.store.Apply(graph.Observed{Object: configMap("plain", "1")})
		}, map[string]float64{"configmaps outdated": 1}},
		"an object that is another under the same version": {func(e *watching) {
			v, _ := e.store.Find("uid-plain")
			o := configMap("plain", v.ResourceVersion)
			o.Owners = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}}
			e.store.Apply(graph.Observed{Object: o})
		}, map[string]float64{"configmaps outdated": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				e.configMap("plain", "")
				e.whole()
				e.configMap("last", "")
				e.pass(time.Second)
				lists := e.listsOf("configmaps")
				c.damage(e)
				e.pass(hourly)
				if n := e.listsOf("configmaps") - lists; n != 1 {
					t.Errorf("%d lists within the hour, want one", n)
				}
				have, want := map[string]float64{}, 0.0
				for what, n := range fixture.Counts(t, e.registry, "weir_graph_faults_total") {
					if n > 0 {
						have[what] = n
						want += n
					}
				}
				if diff := cmp.Diff(c.want, have); len(c.want)+len(have) > 0 && diff != "" {
					t.Errorf("faults (-want +have):\n%s", diff)
				}
				if float64(e.watcher.Faults()) != want {
					t.Errorf("%d faults are told, and %v counted", e.watcher.Faults(), want)
				}
				var names []string
				for _, v := range e.store.Views() {
					if v.Kind == fixture.ConfigMaps {
						names = append(names, v.Name)
						if len(v.Owners) > 0 {
							t.Errorf("%s has owners: %v", v.Name, v.Owners)
						}
					}
				}
				if slices.Sort(names); !slices.Contains(names, "plain") || slices.Contains(names, "nobody") {
					t.Errorf("the graph has %q", names)
				}
				if len(e.back()) > 0 || e.losses() > 0 || e.behind("configmaps") != "" {
					t.Errorf("the history went back: %q, contact was lost %d times", e.back(), e.losses())
				}
			})
		})
	}
}
