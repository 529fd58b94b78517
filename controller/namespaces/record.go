package namespaces

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

// recordsASecond and recordsAtOnce limit the Events that say what was deleted with namespaces, so
// that they are few beside the deletes. The log has all.
const recordsASecond, recordsAtOnce = 10, 500

// went counts the objects that were deleted with a namespace, by kind.
type went struct {
	mu     sync.Mutex
	counts map[schema.GroupResource]int
}

func (w *went) add(kind schema.GroupResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counts == nil {
		w.counts = map[schema.GroupResource]int{}
	}
	w.counts[kind]++
}

// record reports on the namespace what was deleted with it. An Event about a cluster-scoped object
// is in the namespace default; in the one that goes none could be created.
func (p *pass) record() {
	text := p.went.String()
	if text == "" {
		return
	}
	text += " within " + duration.HumanDuration(max(time.Second, time.Since(p.since)))
	if p.order.policy != nil && p.order.policy.Policy != "" {
		text += fmt.Sprintf(", in the order of the DrainPolicy %s", p.order.policy.Policy)
	}
	p.Log.Info("cascade", "namespace", p.ns.Name, "uid", p.ns.UID, "what", text)
	if p.records.Allow() {
		p.Reporter.Drained(graph.Ref{Kind: kinds.Namespaces, Name: p.ns.Name, UID: p.ns.UID}, text)
	}
}

// String returns what was deleted, the kinds with most objects first; empty if nothing was.
func (w *went) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.SortedFunc(maps.Keys(w.counts), func(a, b schema.GroupResource) int {
		return cmp.Or(w.counts[b]-w.counts[a], cmp.Compare(a.String(), b.String()))
	})
	const most = 10
	total := 0
	var parts []string
	for n, k := range all {
		total += w.counts[k]
		if n < most {
			parts = append(parts, fmt.Sprintf("%d %s", w.counts[k], k))
		}
	}
	if more := len(all) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("objects of %d more kinds", more))
	}
	switch total {
	case 0:
		return ""
	case 1:
		return "1 object in it was deleted (" + parts[0] + ")"
	}
	return fmt.Sprintf("%d objects in it were deleted (%s)", total, strings.Join(parts, ", "))
}
