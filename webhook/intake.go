package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/weir-dev/weir/policies"
)

// What is held of reviews at once: with what they take when they are decoded, all of it stays below
// the memory that the chart grants. Large reviews have a share of their own, so that they can only
// be in the way of each other: an API server sends few above this size.
const (
	mostAtOnce  = 1024      // reviews
	smallReview = 128 << 10 // bytes
	mostSmall   = 64 << 20
	mostLarge   = 4 * mostBody
	mostDecoded = 1 << 30 // over what the largest takes that an API server can send
)

const (
	// bodyTime is how long a body may take to come. An API server sends it at once.
	bodyTime = 5 * time.Second
	// roomTime is how long a review waits for room.
	roomTime = time.Second
)

// intake bounds what is taken in.
type intake struct {
	reviews, small, large, decoded *semaphore.Weighted
	bodyTime, roomTime             time.Duration
	// refuses tells whether policies of a part refuse anything.
	refuses func(policies.Part) bool
}

func newIntake(refuses func(policies.Part) bool) *intake {
	return &intake{reviews: semaphore.NewWeighted(mostAtOnce), small: semaphore.NewWeighted(mostSmall), large: semaphore.NewWeighted(mostLarge),
		decoded: semaphore.NewWeighted(mostDecoded), bodyTime: bodyTime, roomTime: roomTime, refuses: refuses}
}

// bounded lets a review in while there is room for it.
func (in *intake) bounded(asked policies.Webhook, part policies.Part, m *metrics) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			size, room := in.room(r)
			if !in.reviews.TryAcquire(1) {
				in.busy(w, r, asked, part, m)
				return
			}
			defer in.reviews.Release(1)
			if !in.await(r.Context(), room, size) {
				in.busy(w, r, asked, part, m)
				return
			}
			defer room.Release(size)
			r.Body = &timed{ReadCloser: r.Body, w: w, time: in.bodyTime}
			next.ServeHTTP(w, r)
		})
	}
}

// await waits a moment for room, and tells whether it was had.
func (in *intake) await(ctx context.Context, room *semaphore.Weighted, size int64) bool {
	if room.TryAcquire(size) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, in.roomTime)
	defer cancel()
	return room.Acquire(ctx, size) == nil
}

// room is how much a review takes, and of what. One that does not say how long it is counts as one
// of the largest.
func (in *intake) room(r *http.Request) (int64, *semaphore.Weighted) {
	size := r.ContentLength
	if size < 0 || size > mostBody {
		size = mostBody
	}
	if size <= smallReview {
		return size, in.small
	}
	return size, in.large
}

// timed is a body that has to come in a time.
type timed struct {
	io.ReadCloser
	w     http.ResponseWriter
	time  time.Duration
	begun bool
}

func (t *timed) Read(p []byte) (int, error) {
	if !t.begun {
		t.begun = true
		readUntil(t.w, time.Now().Add(t.time))
	}
	n, err := t.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		// The server watches the connection while the review is judged. After any other end it
		// would wait for the rest.
		readUntil(t.w, time.Time{})
	}
	return n, err
}

// readUntil sets the deadline of what is read where there is a connection. That it is gone the next
// read says.
func readUntil(w http.ResponseWriter, at time.Time) {
	if conn, ok := w.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = conn.SetReadDeadline(at)
	}
}

// hangUp has a connection end with the answer. What the client has still to send is read for a
// moment, lest it miss the answer, and not waited for.
func hangUp(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	readUntil(w, time.Now().Add(time.Second))
}
