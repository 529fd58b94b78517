package namespaces

import (
	"context"
	"time"
)

// rediscover has it found out again which kinds there are, while content is being deleted already.
func (d *Drainer) rediscover() {
	if !d.Companion { // who proves that nothing is left needs it
		d.Watcher.Discoveries.Want()
	}
}

// followDiscovery looks again at the namespaces that wait for what the cluster serves.
func (d *Drainer) followDiscovery(ctx context.Context) {
	for {
		_, _, next := d.Watcher.Discoveries.Since(time.Time{})
		d.mu.Lock()
		for name, p := range d.begun {
			if p.outside {
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

// waitsOutside notes whether a namespace waits for what the cluster serves.
func (d *Drainer) waitsOutside(p *progress, yes bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p.outside = yes
}
