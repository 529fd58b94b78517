package webhook

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
)

func TestReviewsCannotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		s := newSayer(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
		for range 10 * linesAtOnce {
			s.say("held", "name", "one")
		}
		if len(lines) != linesAtOnce {
			t.Errorf("%d lines at once, want %d", len(lines), linesAtOnce)
		}
		<-time.After(time.Second)
		lines = nil
		for range linesAtOnce {
			s.say("held", "name", "one")
		}
		if len(lines) != linesASecond || !strings.Contains(lines[0], `"leftOut"=900`) || strings.Contains(lines[1], "leftOut") {
			t.Errorf("%d lines after a second, want %d: %v", len(lines), linesASecond, lines)
		}
	})
}

func TestLogShowsABeginningOfWhatIsLong(t *testing.T) {
	for in, want := range map[string]string{
		"short":                                 "short",
		strings.Repeat("x", mostValue):          strings.Repeat("x", mostValue),
		strings.Repeat("x", 1<<20):              strings.Repeat("x", mostValue) + "… (1048576 bytes)",
		strings.Repeat("x", 255) + "я and more": strings.Repeat("x", 255) + "… (266 bytes)",
	} {
		if got := short(in); got != want {
			t.Errorf("%.20s: %.300v", in, got)
		}
	}
	if got := short(3); got != 3 {
		t.Errorf("a number: %v", got)
	}
}
