package webhook

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
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
		if len(lines) != linesASecond || !strings.Contains(lines[0], `"leftOut"=900`) ||
			strings.Contains(lines[1], "leftOut") {
			t.Errorf("%d lines after a second, want %d: %v", len(lines), linesASecond, lines)
		}
	})
}

// Whoever reaches the port, and is no client of it, has a line written each time.
func TestStrangersCannotFillTheLog(t *testing.T) {
	written := 0
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	said := make(chan bool)
	counting := funcr.New(func(_, args string) {
		if strings.Contains(args, "TLS handshake error") && len(args) < 2*mostValue {
			written++
		}
	}, funcr.Options{})
	to := Lines(counting)
	server.Config.ErrorLog = log.New(tee{to, said}, "", 0)
	server.StartTLS()
	defer server.Close()
	for range 3 * linesAtOnce {
		conn, err := net.Dial("tcp", server.Listener.Addr().String()) //nolint:noctx // it is local
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("garbage, and no handshake\n")); err != nil {
			t.Fatal(err)
		}
		<-said // one after the other: the server tells of this one
		_ = conn.Close()
	}
	if written < linesAtOnce || written >= 2*linesAtOnce {
		t.Errorf("%d lines about %d connections", written, 3*linesAtOnce)
	}
}

// tee writes, and says that it has.
type tee struct {
	to   io.Writer
	said chan<- bool
}

func (w tee) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.said <- true
	return n, err
}

func TestLogShowsABeginningOfWhatIsLong(t *testing.T) {
	for in, want := range map[string]string{
		"short":                                 "short",
		strings.Repeat("x", mostValue):          strings.Repeat("x", mostValue),
		strings.Repeat("x", 1<<20):              strings.Repeat("x", mostValue-3) + "…",
		strings.Repeat("x", 252) + "я and more": strings.Repeat("x", 252) + "…",
	} {
		if got := short(in); got != want {
			t.Errorf("%.20s: %.300v", in, got)
		}
	}
	if got := short(3); got != 3 {
		t.Errorf("a number: %v", got)
	}
}
