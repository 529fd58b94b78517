package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// The limit of all requests to the API server that reviews cause: access reviews, reads of objects,
// and writes of finalizers. Users can cause as many as they like.
const (
	requestsASecond = 1000
	requestsAtOnce  = 2000
)

// errBusy says that a review cannot be answered now.
var errBusy = errors.New("weir has reached its limit of requests to the API server")

// paceTime is how long a request waits for its turn.
const paceTime = 2 * time.Second

// pace is a rate limiter whose error is errBusy.
type pace struct{ flowcontrol.RateLimiter }

func newPace(qps float32, burst int) pace {
	return pace{flowcontrol.NewTokenBucketRateLimiter(qps, burst)}
}

// Wait waits for a turn, and fails at once if that would come too late.
func (p pace) Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, paceTime)
	defer cancel()
	if err := p.RateLimiter.Wait(ctx); err != nil {
		return fmt.Errorf("%w: %w", errBusy, err)
	}
	return nil
}
