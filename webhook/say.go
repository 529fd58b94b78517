package webhook

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
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

	mu   sync.Mutex
	left int // lines that were left out since the last
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

func (s *sayer) next() (left int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.limit.AllowN(time.Now(), 1) {
		s.left++
		return 0, false
	}
	left, s.left = s.left, 0
	return left, true
}

// short is what the log shows of a value.
func short(value any) any {
	text, ok := value.(string)
	if !ok {
		if s, is := value.(fmt.Stringer); is {
			text, ok = s.String(), true
		}
	}
	if !ok || len(text) <= mostValue {
		return value
	}
	end := mostValue
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:end], len(text))
}
