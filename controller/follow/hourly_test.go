package follow

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// TestHourlyListRepairsWhatTheWatchDidNotShow breaks the graph behind the back of its watches.
func TestHourlyListRepairsWhatTheWatchDidNotShow(t *testing.T) {
	configMap := func(name, version string) *graph.Object {
		return &graph.Object{Kind: fixture.ConfigMaps, UID: types.UID("uid-" + name), Namespace: "shop", Name: name,
			ResourceVersion: version}
	}
	for name, damage := range map[string]func(*watching){
		"nothing": func(*watching) {},
		"objects that are written all the time": func(e *watching) {
			for i := range 200 {
				time.AfterFunc(time.Duration(i)*time.Minute, func() { e.configMap("plain", ""); e.configMap("new", "") })
			}
		},
		"an object that is not there": func(e *watching) {
			e.store.Apply(graph.Observed{Object: configMap("nobody", "2")})
		},
		"an object that is lost": func(e *watching) {
			e.store.Apply(graph.Unlisted{Kind: fixture.ConfigMaps, UID: "uid-plain"})
		},
		"an object as it was before": func(e *watching) {
			e.store.Apply(graph.Observed{Object: configMap("plain", "1")})
		},
		"an object that is another under the same version": func(e *watching) {
			v, _ := e.store.Find("uid-plain")
			o := configMap("plain", v.ResourceVersion)
			o.Owners = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}}
			e.store.Apply(graph.Observed{Object: o})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				e.configMap("plain", "")
				e.whole()
				e.configMap("last", "")
				e.pass(time.Second)
				lists := e.listsOf("configmaps")
				damage(e)
				e.pass(hourly)
				if n := e.listsOf("configmaps") - lists; n != 1 {
					t.Errorf("%d lists within the hour, want one", n)
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
