package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// What reviews have Weir ask of the API server, all together: access reviews, objects that are
// read, and finalizers that are added. Users can cause as many as they like.
const (
	requestsASecond = 1000
	requestsAtOnce  = 2000
)

// errBusy is why a review cannot be answered now, and can be later.
var errBusy = errors.New("weir has reached its limit of requests to the API server")

// paceTime is how long a request waits for its turn.
const paceTime = 2 * time.Second

// pace is a rate limit that says by its error that it was the reason.
type pace struct{ flowcontrol.RateLimiter }

func newPace(qps float32, burst int) pace {
	return pace{flowcontrol.NewTokenBucketRateLimiter(qps, burst)}
}

// Wait does not begin to wait where the turn would come too late.
func (p pace) Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, paceTime)
	defer cancel()
	if err := p.RateLimiter.Wait(ctx); err != nil {
		return fmt.Errorf("%w: %w", errBusy, err)
	}
	return nil
}
