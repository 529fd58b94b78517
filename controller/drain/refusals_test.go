package drain_test

import (
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/controller/drain"
)

func TestOneReasonIsToldAndAllAreCounted(t *testing.T) {
	for want, refused := range map[string][]string{
		"":                               nil,
		"by RBAC":                        {"by RBAC"},
		"by RBAC (and 2 more refused)":   {"by RBAC", "by RBAC", "by RBAC"},
		"a webhook (and 2 more refused)": {"by RBAC", "a webhook", "by RBAC"},
	} {
		for range 10 {
			rand.Shuffle(len(refused), func(i, j int) { refused[i], refused[j] = refused[j], refused[i] })
			var r drain.Refusals
			for _, text := range refused {
				r.Add(text)
			}
			if have := r.String(); have != want {
				t.Fatalf("%v: %q, want %q", refused, have, want)
			}
		}
	}
}
