package drain_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/controller/drain"
)

func TestEveryReasonIsToldOnceAndCounted(t *testing.T) {
	type refused struct{ name, text string }
	denied := func(names ...string) (out []refused) {
		for _, n := range names {
			out = append(out, refused{n, fmt.Sprintf("configmaps %q is forbidden: by RBAC", n)})
		}
		return out
	}
	var different []refused
	for i := range 150 {
		different = append(different, refused{"x", fmt.Sprintf("reason %03d", i)})
	}
	for name, c := range map[string]struct {
		refused []refused
		want    string
	}{
		"none":             {nil, ""},
		"one":              {denied("a"), `configmaps "a" is forbidden: by RBAC`},
		"one of three":     {denied("b", "a", "c"), `configmaps "a" is forbidden: by RBAC (and 2 more like it)`},
		"two":              {append(denied("b", "a"), refused{"z", "a webhook says no"}), `configmaps "a" is forbidden: by RBAC (and 1 more like it); a webhook says no`},
		"very many":        {different, "reason 000; reason 001; reason 002; and 147 more for other reasons"},
		"a common one too": {append(different[:10:10], denied("a", "b")...), `configmaps "a" is forbidden: by RBAC (and 1 more like it); reason 000; reason 001; and 8 more for other reasons`},
	} {
		for range 10 {
			order := append([]refused(nil), c.refused...)
			if len(order) <= 100 { // past that it matters which came first
				rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			}
			var r drain.Refusals
			for _, o := range order {
				r.Add(o.name, o.text)
			}
			if have := r.String(); have != c.want {
				t.Fatalf("%s: %v\n%s\nwant\n%s", name, order, have, c.want)
			}
		}
	}
}
