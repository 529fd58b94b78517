package brake

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestSetsAreBounded(t *testing.T) {
	s := newSets("")
	first := s.take([]item{{uid: "a"}})
	for i := range 2 * mostDigests {
		s.take([]item{{uid: "a"}, {uid: types.UID(fmt.Sprint("b", i))}})
	}
	if len(s.digests) > mostDigests || len(s.now) != 2 {
		t.Errorf("%d digests, %d objects", len(s.digests), len(s.now))
	}
	if all := s.of(first); len(all) != 0 {
		t.Errorf("a digest that was forgotten stands for %v", all)
	}
	last := s.take([]item{{uid: "a"}})
	if all := s.of(last); len(all) != 1 || all[0].uid != "a" {
		t.Errorf("the last stands for %v", all)
	}
	if all := s.of("0123456789abcdef"); len(all) != 0 {
		t.Errorf("a digest that nobody wrote stands for %v", all)
	}
	if other := newSets(last).take([]item{{uid: "a"}}); other == last {
		t.Error("a digest that is not to count is there again")
	}
}
