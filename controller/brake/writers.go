package brake

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

// writer is who wrote the owner references of an object last, by a name of that client's own choice.
type writer struct {
	manager string
	at      time.Time
}

func (w writer) String() string {
	if w.manager == "" {
		return ""
	}
	return cut(words.Printable(w.manager)+", "+w.at.UTC().Format(time.RFC3339), 256)
}

// writers reads who wrote the references of the samples, each once. What cannot be read is not known, and holds up nothing.
func (k *keeper) writers(ctx context.Context, samples []graph.Inferred) map[types.UID]writer {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found := map[types.UID]writer{}
	for _, s := range samples {
		live, err := k.Client.Resource(s.Kind.WithVersion(s.Version)).Namespace(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		if err == nil && live.GetUID() == s.UID {
			found[s.UID] = writerOf(live.GetManagedFields())
		}
	}
	return found
}

// writerOf is who wrote owner references last.
func writerOf(fields []metav1.ManagedFieldsEntry) (last writer) {
	for _, f := range fields {
		var wrote struct {
			Metadata struct {
				References json.RawMessage `json:"f:ownerReferences"`
			} `json:"f:metadata"`
		}
		if f.FieldsV1 == nil || json.Unmarshal(f.FieldsV1.GetRawBytes(), &wrote) != nil || wrote.Metadata.References == nil || f.Time == nil {
			continue
		}
		if f.Time.After(last.at) {
			last = writer{f.Manager, f.Time.Time}
		}
	}
	return last
}

// by says which client wrote most of the references that were looked at; "" if none is known.
func by(of map[types.UID]writer) string {
	counts := map[string]int{}
	for _, w := range of {
		if w.manager != "" {
			counts[w.manager]++
		}
	}
	if len(counts) == 0 {
		return ""
	}
	most := slices.MaxFunc(slices.Sorted(maps.Keys(counts)), func(a, b string) int { return cmp.Compare(counts[a], counts[b]) })
	return fmt.Sprintf("The owner references of %d of %d examples were written by %s.", counts[most], len(of), words.Printable(cut(most, 128)))
}
