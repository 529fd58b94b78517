package metaonly

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Whatever an API answers, a list that brings nothing ends; and one that brings something is read
// to its end, however long it is.
func TestPagesThatBringNothingNewEndAList(t *testing.T) {
	const most = 10_000
	object := func(uid int) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "o", UID: types.UID(fmt.Sprint(uid))}}
	}
	another := func(page int) string { return fmt.Sprint(page) }
	for name, c := range map[string]struct {
		first func(page int) *metav1.PartialObjectMetadata
		token func(page int) string
		pages int // that are read
	}{
		"always more":      {object, another, most},
		"the same token":   {object, func(int) string { return "more" }, 2},
		"no objects":       {func(int) *metav1.PartialObjectMetadata { return nil }, another, mostIdle},
		"the same objects": {func(int) *metav1.PartialObjectMetadata { return object(0) }, another, mostIdle + 1},
		"the same pages, one by one": {func(page int) *metav1.PartialObjectMetadata {
			return object(page % 7)
		}, another, mostIdle + 7},
		"few objects, and none for a few": {func(page int) *metav1.PartialObjectMetadata {
			if page%mostIdle != 0 {
				return nil
			}
			return object(page)
		}, another, most},
	} {
		var p Pages
		n := 0
		for n < most {
			n++
			if first := c.first(n - 1); first != nil {
				p.Saw(&first.ObjectMeta)
				p.Saw(&metav1.ObjectMeta{Name: "another of the page", UID: types.UID(fmt.Sprint("another", n))})
			}
			if p.Next(c.token(n-1)) != nil {
				break
			}
		}
		if n != c.pages {
			t.Errorf("%s: %d pages are read, want %d", name, n, c.pages)
		}
		if err := p.Next(""); err != nil {
			t.Errorf("%s: the last page: %v", name, err)
		}
	}
}
