package webhook

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"

	"github.com/weir-dev/weir/controller/words"
)

// The limits of the log that reviews cause, with what they contain.
const (
	linesASecond = 10
	linesAtOnce  = 100
	mostValue    = 256 // bytes of a value
)

// sayer writes a log that reviews cannot fill: it limits the lines, and the length of values.
type sayer struct {
	log   logr.Logger
	limit *rate.Limiter
	left  atomic.Int64 // lines that were left out since the last
}

func newSayer(log logr.Logger) *sayer {
	return &sayer{log: log, limit: rate.NewLimiter(linesASecond, linesAtOnce)}
}

// say writes a line, unless the limit is reached.
func (s *sayer) say(msg string, keysAndValues ...any) {
	left, ok := s.next()
	if !ok {
		return
	}
	for i := 1; i < len(keysAndValues); i += 2 {
		keysAndValues[i] = short(keysAndValues[i])
	}
	if left > 0 {
		keysAndValues = append(keysAndValues, "leftOut", left)
	}
	s.log.Info(msg, keysAndValues...)
}

// Lines returns a writer for the error log of Go's HTTP servers. A client that does not speak TLS,
// or goes away, causes such a line, so it is limited as the log of reviews is.
func Lines(log logr.Logger) io.Writer { return lines{newSayer(log)} }

type lines struct{ to *sayer }

// Write implements io.Writer. What is left out counts as written.
func (l lines) Write(p []byte) (int, error) {
	l.to.say("an HTTP server says", "text", strings.TrimSpace(string(p)))
	return len(p), nil
}

// next reports whether a line may be written, and how many were left out before it.
func (s *sayer) next() (left int64, ok bool) {
	if !s.limit.Allow() {
		s.left.Add(1)
		return 0, false
	}
	return s.left.Swap(0), true
}

// short returns what the log shows of a value.
func short(value any) any {
	switch v := value.(type) {
	case string:
		return words.Cut(v, mostValue)
	case fmt.Stringer:
		return words.Cut(v.String(), mostValue)
	}
	return value
}
