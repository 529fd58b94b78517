package namespaces

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/words"
)

// recordsASecond and recordsAtOnce limit the Events that say what was deleted with namespaces, so
// that they are few beside the deletes. The log has all.
const recordsASecond, recordsAtOnce = 10, 500

// went counts the objects that were deleted with a namespace, by kind.
type went map[schema.GroupResource]int

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
		p.Reporter.Tell(graph.Ref{Kind: kinds.Namespaces, Name: p.ns.Name, UID: p.ns.UID}, events.ReasonCascade, text)
	}
}

// String returns what was deleted, the kinds with most objects first; empty if nothing was.
func (w went) String() string {
	total := 0
	for _, n := range w {
		total += n
	}
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("%s deleted (%s)", words.Count(total, "object in it was", "objects in it were"), words.Kinds(w))
}
