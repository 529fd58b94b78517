package namespaces

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/policies"
)

// foreign knows all webhook configurations but Weir's own. The API server asks webhooks after it
// has checked that the namespace is not being deleted, and waits for them. So what they let through
// may arrive when the namespace is empty, or gone. Which configuration sees creates in which
// namespace is not looked at: most clusters have one that sees all.
type foreign struct {
	store *follow.Store

	mu  sync.Mutex
	all map[types.UID]foreignHook
}

// foreignHook is a webhook configuration. A create may still be with its webhooks for a while after
// the configuration is gone.
type foreignHook struct {
	name string
	gone time.Time // zero: it still exists
}

// seen is called with each webhook configuration that exists.
func (f *foreign) seen(m *metav1.PartialObjectMetadata) {
	if m.Name == policies.WebhookConfigurations {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[m.UID] = foreignHook{name: m.Name}
}

// any returns a text that names a configuration whose webhooks may see a create; empty if there is
// none. It returns a text, too, if the configurations are not known.
func (f *foreign) any() string {
	followed := 0
	for _, k := range f.store.Stats().Kinds {
		gr := k.GroupResource()
		if k.State == graph.Synced && (gr == kinds.MutatingConfigurations || gr == kinds.ValidatingConfigurations) {
			followed++
		}
	}
	if followed < 2 {
		return "admission webhooks that are not known"
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	first := ""
	for uid, h := range f.all {
		if _, there := f.store.Find(uid); !there && h.gone.IsZero() {
			h.gone = time.Now()
			f.all[uid] = h
		}
		switch {
		case !h.gone.IsZero() && time.Since(h.gone) > lateFor:
			delete(f.all, uid)
		case first == "" || h.name < first:
			first = h.name
		}
	}
	if first == "" {
		return ""
	}
	return "admission webhooks of the configuration " + first
}
