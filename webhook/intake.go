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

// Reviews take room, in bytes, for their text and for what it is when it is decoded. All that is
// taken at once stays below the memory that the chart grants.
const (
	mostRoom  = 1344 << 20
	leastRoom = 1 << 20 // of a review, which bounds how many there are
	// smallReview is the size up to which a review waits for room, and keptForSmall what large ones
	// leave free for those: they can only be in the way of each other, and an API server sends few.
	smallReview  = 128 << 10
	keptForSmall = 256 << 20
	// mostDecoded is over what the largest review takes that an API server can send.
	mostDecoded = mostRoom - keptForSmall - mostBody
	// mostGrowth is how many times its size a review takes at most, with its text: that of {"":0}.
	mostGrowth = 1 + decodes*(2+(objectSize+itemSize)/7)
)

const (
	// bodyTime is how long a body may take to come. An API server sends it at once.
	bodyTime = 5 * time.Second
	// roomTime is how long a small review waits for room.
	roomTime = time.Second
)

var (
	// errTooMany is why a review is not taken in now, and can be later.
	errTooMany = errors.New("weir is judging as many requests as it can at once")
	// errTooLarge is why a review is not taken in at all.
	errTooLarge = errors.New("the review is too large")
)

// intake bounds what is taken in.
type intake struct {
	free               *semaphore.Weighted
	bodyTime, roomTime time.Duration
	// refuses tells whether policies of a part refuse anything.
	refuses func(policies.Part) bool
}

func newIntake(refuses func(policies.Part) bool) *intake {
	return &intake{free: semaphore.NewWeighted(mostRoom), bodyTime: bodyTime, roomTime: roomTime, refuses: refuses}
}

// take reads a review, or as much of it as is taken in, while there is room. It returns what the
// caller has to release, after an error, too.
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
	if size < 0 || size > mostBody { // one that does not say how long it is counts as one of the largest
		size = mostBody
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

// await waits a moment for room, and tells whether it was had.
func (in *intake) await(ctx context.Context, room int64) bool {
	ctx, cancel := context.WithTimeout(ctx, in.roomTime)
	defer cancel()
	return in.free.Acquire(ctx, room) == nil
}

// spare takes room that small reviews can do without, and tells whether it was had.
func (in *intake) spare(room int64) bool {
	if !in.free.TryAcquire(room + keptForSmall) {
		return false
	}
	in.free.Release(keptForSmall)
	return true
}

// read reads a body that has to come in a time.
func (in *intake) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	readUntil(w, time.Now().Add(in.bodyTime))
	var body bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= mostBody {
		body.Grow(int(n) + bytes.MinRead) // it looks for more once more
	}
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, mostBody))
	if long := (*http.MaxBytesError)(nil); errors.As(err, &long) {
		return body.Bytes(), fmt.Errorf("%w: it has more than %d bytes", errTooLarge, mostBody)
	}
	if err != nil { // the deadline stays: the server waits for the rest
		return nil, fmt.Errorf("read the review: %w", err)
	}
	readUntil(w, time.Time{}) // the server watches the connection while the review is judged
	return body.Bytes(), nil
}

// readUntil sets the deadline of what is read. Where there is no connection, or it is gone, the next
// read says so.
func readUntil(w http.ResponseWriter, at time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(at)
}

// hangUp has a connection end with the answer. What the client has still to send is read for a
// moment, lest it miss the answer, and not waited for.
func hangUp(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	readUntil(w, time.Now().Add(time.Second))
}

// What JSON takes of memory when it is decoded, in bytes, at most: an object is a map that has room
// for eight fields from its first on, and whatever stands in a list or an object has a place in it.
const (
	objectSize = 360
	itemSize   = 90
	// decodes is how often: metadata, and all of an object for conditions that look at more.
	decodes = 2
)

// decodedSize is how many bytes a review takes when it is decoded, at most. Brackets in strings are
// none: a text full of them would count as what it is not.
func decodedSize(body []byte) int64 {
	objects, items, inString := 0, 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++ // whatever is escaped ends no string
		case inString:
		case c == '{' && (i+1 == len(body) || body[i+1] != '}'): // an empty one takes no more than an item
			objects++
		case c == '[' || c == ',' || c == '{':
			items++
		}
	}
	return decodes * int64(len(body)+objectSize*objects+itemSize*items)
}
