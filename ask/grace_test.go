package ask

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// withPods gives the town some namespaces with two pods each, whose last one may take two minutes
// to stop.
func (w *town) withPods(namespaces ...string) {
	w.core = []metav1.APIResource{{Name: "pods", SingularName: "pod", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"list", "watch", "get", "delete"}}}
	for _, in := range namespaces {
		w.api.Put("namespaces", fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", in))
		for name, seconds := range map[string]int{"quick": 5, "slow": 120} {
			w.api.Put("pods", fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s, uid: %s-%s}, spec: {terminationGracePeriodSeconds: %d, nodeName: n1}}", name, in, in, name, seconds))
		}
	}
}

// TestPodsHaveTheirTimeToStop: a plan says how long pods may take, of those that can be read, and
// of few namespaces; it is whole without.
func TestPodsHaveTheirTimeToStop(t *testing.T) {
	for name, c := range map[string]struct {
		args   string
		refuse string // a path that is refused
		known  int    // of how many pods it is told
		slow   int    // of how many of those that are drawn it is two minutes: namespaces that are alike are drawn once
		goes   int    // pods
	}{
		"one pod":                            {"plan pod slow -n a", "", 1, 1, 1},
		"one that stops soon":                {"plan pod quick -n a", "", 1, 0, 1},
		"three namespaces":                   {"plan namespaces a b c", "", 6, 1, 6},
		"four namespaces":                    {"plan namespaces a b c d", "", 0, 0, 8},
		"namespaces of which one is refused": {"plan namespaces a b", "/namespaces/b/pods", 2, 1, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t)
			w.withPods("a", "b", "c", "d")
			if c.refuse != "" {
				w.refuse(c.refuse, 403, "Forbidden", "you may not")
			}
			text, data, names := w.run(strings.Fields(c.args)...), w.run(strings.Fields(c.args+" -o json")...), w.run(strings.Fields(c.args+" -o name")...)
			if text.failed != nil || data.failed != nil || names.failed != nil {
				t.Fatal(text.failed, data.failed, names.failed)
			}
			if known := strings.Count(data.out, `"gracePeriodSeconds"`); known != c.known {
				t.Errorf("of %d pods it is told how long they take, want %d:\n%s", known, c.known, data.out)
			}
			if slow := strings.Count(text.out, "up to 2m to stop"); slow != c.slow {
				t.Errorf("%d pods take two minutes, want %d:\n%s", slow, c.slow, text.out)
			}
			if goes := strings.Count(names.out, "pods/"); goes != c.goes || strings.Contains(data.out, `"unread": [{`) {
				t.Errorf("%d pods go, want %d:\n%s", goes, c.goes, names.out)
			}
		})
	}
}
