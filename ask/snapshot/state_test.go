package snapshot

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// TestOnlyACompleteListSaysThatAnObjectIsGone: whoever asks for an object of a kind that could not
// be listed, or has yet to be, is told that.
func TestOnlyACompleteListSaysThatAnObjectIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		kind         followed
		object, says string
		gone, found  bool
	}{
		"it is there":            {followed{synced: true}, "a", "", false, true},
		"it is not":              {followed{synced: true}, "b", `there is no configmaps "b"`, true, false},
		"the list has yet to be": {followed{}, "b", "not known yet: configmaps are being listed", false, false},
		"the watch is broken":    {followed{synced: true, problem: "refused"}, "b", "configmaps cannot be listed: refused", false, false},
		"it was seen before":     {followed{problem: "refused"}, "a", "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			k := &c.kind
			k.kind = graph.Resource{Resource: "configmaps", Version: "v1"}
			k.objects = map[string]map[types.UID]*metav1.PartialObjectMetadata{"x": {"uid": {ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "a"}}}}
			f := &Follower{kinds: map[schema.GroupResource]*followed{{Resource: "configmaps"}: k}}
			_, uid, err := f.Find("configmaps", "x", c.object)
			if (uid == "uid") != c.found || errors.Is(err, ErrGone) != c.gone || err != nil && !strings.Contains(err.Error(), c.says) || (err == nil) != c.found {
				t.Errorf("uid %q, %v", uid, err)
			}
			if _, _, err := f.Find("secrets", "x", c.object); !errors.Is(err, ErrNotServed) {
				t.Errorf("of a kind that is not served: %v", err)
			}
			// Another has its name by now.
			k.objects["x"] = map[types.UID]*metav1.PartialObjectMetadata{"second": {ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "a"}}}
			if _, uid, err := f.Find("configmaps", "x", "a"); uid != "second" {
				t.Errorf("uid %q, %v, want that of the second", uid, err)
			}
		})
	}
}

// TestNoKindThatFollowsIsAnAPIServerThatIsLost, which is sooner known than from discovery; but what
// the user may not list says nothing of it.
func TestNoKindThatFollowsIsAnAPIServerThatIsLost(t *testing.T) {
	well, waits, broken, denied := followed{synced: true}, followed{}, followed{synced: true, problem: "no route"}, followed{problem: "not you", denied: true}
	for name, c := range map[string]struct {
		kinds []followed
		want  Health
	}{
		"all follow":            {[]followed{well, well}, Health{Behind: map[string]string{}}},
		"one is being listed":   {[]followed{well, waits}, Health{Waiting: 1, Behind: map[string]string{}}},
		"one is broken":         {[]followed{well, broken}, Health{Behind: map[string]string{"b": "no route"}}},
		"all are":               {[]followed{broken, broken}, Health{Lost: "no kind can be followed", Behind: map[string]string{"a": "no route", "b": "no route"}}},
		"all that may be":       {[]followed{broken, denied}, Health{Lost: "no kind can be followed", Denied: 1, Behind: map[string]string{"a": "no route"}}},
		"nothing may be listed": {[]followed{denied, denied}, Health{Denied: 2, Behind: map[string]string{}}},
	} {
		f := &Follower{kinds: map[schema.GroupResource]*followed{}}
		for i := range c.kinds {
			f.kinds[schema.GroupResource{Resource: string(rune('a' + i))}] = &c.kinds[i]
		}
		if diff := cmp.Diff(c.want, f.Health()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
