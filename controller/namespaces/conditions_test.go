package namespaces

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestConditionsOfOthersStayAndATimeMovesWithItsStatus: the built-in namespace controller, and
// whoever else writes into the status, keep what is theirs; who waits for a transition sees one
// only where there is one; and nothing is written that is there already.
func TestConditionsOfOthersStayAndATimeMovesWithItsStatus(t *testing.T) {
	type condition = corev1.NamespaceCondition
	for name, c := range map[string]struct {
		present, wanted []condition
		want            []string
		changed         bool
	}{
		"the first":        {nil, []condition{{Type: "A", Status: "True", Message: "m"}}, []string{"A True m now"}, true},
		"one is there":     {[]condition{{Type: "A", Status: "True", Message: "m"}}, []condition{{Type: "A", Status: "True", Message: "m"}}, []string{"A True m before"}, false},
		"another message":  {[]condition{{Type: "A", Status: "True", Message: "m"}}, []condition{{Type: "A", Status: "True", Message: "n"}}, []string{"A True n before"}, true},
		"another status":   {[]condition{{Type: "A", Status: "True", Message: "m"}}, []condition{{Type: "A", Status: "False", Message: "m"}}, []string{"A False m now"}, true},
		"one of another":   {[]condition{{Type: "X", Status: "True", Message: "x"}}, []condition{{Type: "A", Status: "True"}}, []string{"X True x before", "A True  now"}, true},
		"nothing is meant": {[]condition{{Type: "X", Status: "True"}}, nil, []string{"X True  before"}, false},
		"one of several":   {[]condition{{Type: "A", Status: "True"}, {Type: "B", Status: "True"}}, []condition{{Type: "A", Status: "True"}, {Type: "B", Status: "False"}}, []string{"A True  before", "B False  now"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := metav1.Now()
				for i := range c.present {
					c.present[i].LastTransitionTime = before
				}
				<-time.After(time.Minute)
				was := fmt.Sprint(c.present)
				merged, changed := mergeConditions(c.present, c.wanted)
				var got []string
				for _, m := range merged {
					when := "now"
					if m.LastTransitionTime.Equal(&before) {
						when = "before"
					}
					got = append(got, fmt.Sprintf("%s %s %s %s", m.Type, m.Status, m.Message, when))
				}
				if diff := cmp.Diff(c.want, got); diff != "" || changed != c.changed {
					t.Errorf("changed=%t, want %t (-want +got):\n%s", changed, c.changed, diff)
				}
				if fmt.Sprint(c.present) != was {
					t.Error("what the watch has shown was written to")
				}
			})
		})
	}
}
