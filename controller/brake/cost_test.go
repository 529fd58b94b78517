package brake

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/controller/graph"
)

// BenchmarkOfEachDelete is what the brake takes of a worker for each object of a cascade: of one
// that was asked for, and of one that is inferred, once its root was let through.
func BenchmarkOfEachDelete(bench *testing.B) {
	inherited := graph.Inference{Conclusion: graph.DefinitionGone, Owners: configMaps, Inherited: true}
	for name, inferred := range map[string]graph.Inference{"asked for": {}, "inferred": inherited} {
		bench.Run(name, func(bench *testing.B) {
			b := asking("leaf")
			b.Limits = Limits{Objects: 500, Share: 0.1, Most: 5000}
			b.ledger.limits = b.Limits
			acc := newAccount(time.Now())
			b.ledger.kinds[configMaps] = acc
			a := graph.Action{Verb: graph.Delete, Object: mapRef("leaf"), Inferred: inferred}
			for bench.Loop() {
				acc.follows[configMaps] = 2 // what follows from an object let through goes without being counted once more
				if goes, _ := b.Allows(a); !goes {
					bench.Fatal("held")
				}
				b.Deleted(a)
			}
		})
	}
}
