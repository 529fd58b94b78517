package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/weir-dev/weir/policies"
)

// Room is the memory, in bytes, for the text of reviews and for what they are when decoded. All of
// it is less than the memory that the chart grants.
const (
	mostRoom  = 1344 << 20
	leastRoom = 1 << 20 // for a review, which bounds how many there are
	// smallReview is the size up to which a review waits for room, and keptForSmall the room that
	// large ones leave free. So large reviews, of which an API server sends few, can only hold up
	// each other.
	smallReview  = 128 << 10
	keptForSmall = 256 << 20
	// mostDecoded is more than the largest review takes that an API server can send.
	mostDecoded = mostRoom - keptForSmall - mostBody
	// mostGrowth is how many times its size a review takes at most, with its text: for {"":0}.
	mostGrowth = 1 + decodes*(2+(objectSize+itemSize)/7)
)

const (
	// bodyTime is how long a body may take to come. An API server sends it at once.
	bodyTime = 5 * time.Second
	// roomTime is how long a small review waits for room.
	roomTime = time.Second
)

var (
	// errTooMany says that there is no room for a review now.
	errTooMany = errors.New("weir is judging as many requests as it can at once")
	// errTooLarge says that there is never room for it.
	errTooLarge = errors.New("the review is too large")
)

// intake bounds the memory of reviews.
type intake struct {
	free               *semaphore.Weighted
	most               int64 // bytes of a review
	bodyTime, roomTime time.Duration
	// refuses reports whether policies of a part refuse anything.
	refuses func(policies.Part) bool
}

func newIntake(refuses func(policies.Part) bool) *intake {
	return &intake{free: semaphore.NewWeighted(mostRoom), most: mostBody, bodyTime: bodyTime, roomTime: roomTime,
		refuses: refuses}
}

// take reads a review, or as much of it as there is room for. The caller has to release the room
// that it returns, also with an error.
func (in *intake) take(w http.ResponseWriter, r *http.Request) (body []byte, room int64, err error) {
	size := r.ContentLength
	if size >= 0 && size <= smallReview {
		room = max(leastRoom, size*mostGrowth)
		if !in.await(r.Context(), room) {
			return nil, 0, errTooMany
		}
		body, err = in.read(w, r)
		return body, room, err
	}
	if size < 0 || size > in.most { // without a length it counts as the largest
		size = in.most
	}
	if !in.spare(size) {
		return nil, 0, errTooMany
	}
	if body, err = in.read(w, r); err != nil {
		return body, size, err
	}
	switch more := decodedSize(body); {
	case more > mostDecoded:
		return body, size, fmt.Errorf("%w: it takes up to %d bytes when it is decoded", errTooLarge, more)
	case !in.spare(more):
		return body, size, errTooMany
	default:
		return body, size + more, nil
	}
}

// await waits a moment for room, and reports whether there was some. Room that is free is taken
// however late the processor gets to it: Acquire asks first whether the moment is over.
func (in *intake) await(ctx context.Context, room int64) bool {
	if in.free.TryAcquire(room) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, in.roomTime)
	defer cancel()
	return in.free.Acquire(ctx, room) == nil
}

// spare takes room beyond what is kept for small reviews, and reports whether there was some.
func (in *intake) spare(room int64) bool {
	if !in.free.TryAcquire(room + keptForSmall) {
		return false
	}
	in.free.Release(keptForSmall)
	return true
}

// read reads a body, which has to come in time.
func (in *intake) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	readUntil(w, time.Now().Add(in.bodyTime))
	var body bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= in.most {
		body.Grow(int(n) + bytes.MinRead) // ReadFrom reads until io.EOF
	}
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, in.most))
	if long := (*http.MaxBytesError)(nil); errors.As(err, &long) {
		return body.Bytes(), fmt.Errorf("%w: it has more than %d bytes", errTooLarge, in.most)
	}
	if err != nil { // the deadline stays, since the server waits for the rest
		return nil, fmt.Errorf("read the review: %w", err)
	}
	readUntil(w, time.Time{}) // the server reads the connection while the review is judged
	return body.Bytes(), nil
}

// readUntil sets the read deadline of a connection. If it is gone, the next read fails.
func readUntil(w http.ResponseWriter, at time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(at)
}

// hangUp has a connection end with the answer. What the client still sends is read for a moment, or
// it might miss the answer.
func hangUp(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	readUntil(w, time.Now().Add(time.Second))
}

// The memory that JSON takes when it is decoded, in bytes, at most. An object is a map with room
// for eight fields from its first on, and each item of a list or an object has a place in it.
const (
	objectSize = 360
	itemSize   = 90
	// decodes is how often a review is decoded: metadata, and whole objects for conditions that look
	// at more.
	decodes = 2
)

// decodedSize returns how many bytes a review takes at most when it is decoded. It skips strings,
// or a text full of brackets would count for too much.
func decodedSize(body []byte) int64 {
	objects, items, inString := 0, 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++ // an escaped character does not end the string
		case inString:
		case c == '{' && (i+1 == len(body) || body[i+1] != '}'): // an empty one takes no more than an item
			objects++
		case c == '[' || c == ',' || c == '{':
			items++
		}
	}
	return decodes * int64(len(body)+objectSize*objects+itemSize*items)
}
