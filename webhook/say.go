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

// Whoever sends reviews has lines of the log written, with what they sent in them.
const (
	linesASecond = 10
	linesAtOnce  = 100
	mostValue    = 256 // bytes of a value
)

// sayer writes a log that reviews cannot fill: so many lines in a second, and so much of what they
// said.
type sayer struct {
	log   logr.Logger
	limit *rate.Limiter
	left  atomic.Int64 // lines that were left out since the last
}

func newSayer(log logr.Logger) *sayer {
	return &sayer{log: log, limit: rate.NewLimiter(linesASecond, linesAtOnce)}
}

// say writes a line, if it is time.
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

// Lines is where Go's HTTP servers write that a client does not speak TLS, or went away: whoever
// reaches a port can have such lines written. It takes as many as reviews may have written.
func Lines(log logr.Logger) io.Writer { return lines{newSayer(log)} }

type lines struct{ to *sayer }

// Write implements io.Writer. What is left out counts as written.
func (l lines) Write(p []byte) (int, error) {
	l.to.say("an HTTP server says", "text", strings.TrimSpace(string(p)))
	return len(p), nil
}

// next tells whether a line may be written, and how many were left out before it.
func (s *sayer) next() (left int64, ok bool) {
	if !s.limit.Allow() {
		s.left.Add(1)
		return 0, false
	}
	return s.left.Swap(0), true
}

// short is what the log shows of a value.
func short(value any) any {
	switch v := value.(type) {
	case string:
		return words.Cut(v, mostValue)
	case fmt.Stringer:
		return words.Cut(v.String(), mostValue)
	}
	return value
}
