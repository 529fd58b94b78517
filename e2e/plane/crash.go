package plane

import (
	"context"
	"fmt"
)

// Crash kills etcd or the API server, without a warning, and starts it again on the same data and
// port. It returns when both answer. What a killed etcd wrote is with the kernel, and is there when
// it is back: only a machine that dies could lose what was not synced.
func (p *Plane) Crash(ctx context.Context, part Part) error {
	c := p.Child(part)
	if c == nil || part != Etcd && part != APIServer {
		return fmt.Errorf("crash %s: it is not running, or cannot be started again in place", part)
	}
	c.Kill()
	if err := p.start(ctx, c); err != nil {
		return err
	}
	if part == Etcd {
		if err := p.await(ctx, c, answers(localClient(), "http://"+loopback(p.etcd)+"/health")); err != nil {
			return err
		}
	}
	return p.awaitAPIServer(ctx, p.Child(APIServer))
}
