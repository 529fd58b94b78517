package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/flowcontrol"
)

// What reviews have Weir ask of the API server, all together: access reviews, objects that are
// read, and finalizers that are added. Users can cause as many as they like.
const (
	requestsASecond = 1000
	requestsAtOnce  = 2000
)

// errBusy is why a review cannot be answered now, and can be later.
var errBusy = errors.New("weir asks the API server as much as it may")

// paceTime is how long a request waits for its turn.
const paceTime = 2 * time.Second

// pace is a rate limit that says by its error that it was the reason.
type pace struct{ limit *rate.Limiter }

var _ flowcontrol.RateLimiter = pace{}

func newPace(qps rate.Limit, burst int) pace { return pace{rate.NewLimiter(qps, burst)} }

// Wait implements flowcontrol.RateLimiter. It does not begin to wait where the turn would come too
// late.
func (p pace) Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, paceTime)
	defer cancel()
	if err := p.limit.Wait(ctx); err != nil {
		return fmt.Errorf("%w: %w", errBusy, err)
	}
	return nil
}

// TryAccept implements flowcontrol.RateLimiter.
func (p pace) TryAccept() bool { return p.limit.Allow() }

// Accept implements flowcontrol.RateLimiter.
func (p pace) Accept() { _ = p.limit.Wait(context.Background()) }

// Stop implements flowcontrol.RateLimiter.
func (p pace) Stop() {}

// QPS implements flowcontrol.RateLimiter.
func (p pace) QPS() float32 { return float32(p.limit.Limit()) }
