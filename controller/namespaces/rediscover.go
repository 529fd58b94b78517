package namespaces

import (
	"context"
	"time"
)

// rediscover requests a discovery of kinds, which goes on while content is being deleted.
func (d *Drainer) rediscover() {
	if !d.Companion { // only the proof that nothing is left needs it
		d.Watcher.Discoveries.Want()
	}
}

// followDiscovery wakes the namespaces that wait for what the cluster serves, after each discovery.
func (d *Drainer) followDiscovery(ctx context.Context) {
	for {
		_, _, next := d.Watcher.Discoveries.Since(time.Time{})
		d.mu.Lock()
		for name, p := range d.begun {
			if p.outside.Load() {
				d.wake(name, "the cluster may serve other kinds", 0)
			}
		}
		d.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-next:
		}
	}
}
