package metaonly

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// source is a connection that has a piece of so many bytes at each of these moments, and then ends.
type source struct {
	net.Conn
	began  time.Time
	pieces []piece
	reads  int
	sent   []byte
}

type piece struct {
	at    time.Duration
	bytes int
}

func (s *source) Read(p []byte) (int, error) {
	s.reads++
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	time.Sleep(time.Until(s.began.Add(s.pieces[0].at))) // blocks, as a read does
	n := 0
	for len(s.pieces) > 0 && n < len(p) && time.Since(s.began) >= s.pieces[0].at {
		take := min(len(p)-n, s.pieces[0].bytes)
		for i := range take {
			p[n+i] = byte(len(s.sent) + i)
		}
		s.sent = append(s.sent, p[n:n+take]...)
		n += take
		if s.pieces[0].bytes -= take; s.pieces[0].bytes == 0 {
			s.pieces = s.pieces[1:]
		}
	}
	return n, nil
}

func (s *source) dial(context.Context, string, string) (net.Conn, error) { return s, nil }

// TestConnectionGathers what comes close together, and loses nothing of it.
func TestConnectionGathers(t *testing.T) {
	stream := func(n int, every time.Duration, size int) (all []piece) {
		for i := range n {
			all = append(all, piece{time.Duration(i) * every, size})
		}
		return all
	}
	for _, tt := range []struct {
		name   string
		pieces []piece
		reads  int // of the connection below, the end among them
		took   time.Duration
	}{
		{"nothing", nil, 1, 0},
		{"one", stream(1, 0, 100), 2, 0},
		{"rarely", stream(5, time.Second, 100), 6, 4 * time.Second},
		{"one thing after the other", stream(100, 5*time.Millisecond, 500), 101, 99 * 5 * time.Millisecond},
		{"1000 a second, one second", stream(1000, time.Millisecond, 200), 107, 1005 * time.Millisecond},
		{"as much as there can be", stream(1, 0, 10*most), 11, 0},
		{"a little more than one read", stream(1, 0, most+1), 3, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &source{began: time.Now(), pieces: tt.pieces}
			c, err := gathering(s.dial)(t.Context(), "tcp", "")
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, s.sent) {
				t.Errorf("%s: %d bytes, of %d that were sent: %v", tt.name, len(got), len(s.sent), err)
			}
			if took := time.Since(s.began); s.reads != tt.reads || took != tt.took {
				t.Errorf("%s: %d reads in %s, want %d in %s", tt.name, s.reads, took, tt.reads, tt.took)
			}
		})
	}
}

// TestEventAfterSilenceIsReadAtOnce and the next ones too, until there have been several: then the connection is left alone for a while each time,
// until that brings little.
func TestEventAfterSilenceIsReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{began: time.Now()}
		var at []time.Duration
		for i := range inARow + 1 {
			at = append(at, time.Minute+time.Duration(i)*time.Millisecond)
		}
		last := at[inARow]
		for i, n := range []int{10, 10, 10, 10, 10, 10, little, 10, 10} {
			s.pieces = append(s.pieces, piece{time.Minute + time.Duration(i)*time.Millisecond, n})
		}
		s.pieces = append(s.pieces, piece{last + gather + time.Millisecond, 10}, piece{last + 2*gather + time.Millisecond, 10})
		c := &conn{Conn: s, buffer: make([]byte, most)}
		for _, want := range append(at, last+gather, last+2*gather, last+2*gather+time.Millisecond) {
			if _, err := c.Read(make([]byte, most)); err != nil || time.Since(s.began) != want {
				t.Errorf("read after %s, want %s: %v", time.Since(s.began), want, err)
			}
		}
	})
}

var errBroken = errors.New("broken")

// breaks has data and an error in one answer, and data again.
type breaks struct{ net.Conn }

func (breaks) Read(p []byte) (int, error) { return copy(p, "data"), errBroken }

// TestErrorComesAfterTheData that came with it.
func TestErrorComesAfterTheData(t *testing.T) {
	c := &conn{Conn: breaks{}, buffer: make([]byte, most)}
	p := make([]byte, 3)
	for _, want := range []struct {
		data string
		err  error
	}{{"dat", nil}, {"a", nil}, {"", errBroken}, {"dat", nil}} {
		if n, err := c.Read(p); string(p[:n]) != want.data || !errors.Is(err, want.err) {
			t.Errorf("read %q, %v; want %q, %v", p[:n], err, want.data, want.err)
		}
	}
}
