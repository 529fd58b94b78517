package metaonly

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
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
		{"1000 a second, one second", stream(1000, time.Millisecond, 200), 57, 1005*time.Millisecond + gather},
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

// TestBusyConnectionIsLeftAlone after each read that has brought all there was, once several came
// close together, until several in a row bring little, or one comes after a silence.
func TestBusyConnectionIsLeftAlone(t *testing.T) {
	const ms = time.Millisecond
	// busy are pieces after which the connection is busy, the last of them at 5 ms.
	busy := []piece{{0, 10}, {ms, 10}, {2 * ms, 10}, {3 * ms, 10}, {4 * ms, 10}, {5 * ms, 10}}
	left := 5*ms + gather // until when it is left alone then
	for _, tt := range []struct {
		name   string
		pieces []piece
		want   []time.Duration // when it is read after that
	}{
		{"much that comes meanwhile", []piece{{6 * ms, little}, {7 * ms, 10}, {left + ms, little}},
			[]time.Duration{left, left + gather}},
		{
			"little five times, and at once from then on",
			[]piece{{6 * ms, 10}, {left + ms, 10}, {left + gather + ms, 10}, {left + 2*gather + ms, 10},
				{left + 3*gather + ms, 10}, {left + 4*gather + ms, 10}, {left + 4*gather + 2*ms, 10}},
			[]time.Duration{left, left + gather, left + 2*gather, left + 3*gather, left + 4*gather, left + 4*gather + ms,
				left + 4*gather + 2*ms},
		},
		{
			"little four times, and then much",
			[]piece{{6 * ms, 10}, {left + ms, 10}, {left + gather + ms, 10}, {left + 2*gather + ms, 10},
				{left + 3*gather + ms, little}, {left + 4*gather + ms, 10}},
			[]time.Duration{left, left + gather, left + 2*gather, left + 3*gather, left + 4*gather, left + 5*gather},
		},
		{"silence", []piece{{time.Minute, 2 * little}, {time.Minute + ms, 10}},
			[]time.Duration{time.Minute, time.Minute + ms}},
		{
			"a pause that is no silence",
			[]piece{{left + silence, 2 * little}, {left + silence + ms, 10}},
			[]time.Duration{left + silence, left + silence + gather},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &source{began: time.Now(), pieces: slices.Concat(busy, tt.pieces)}
			c := &conn{Conn: s, buffer: make([]byte, most)}
			var got []time.Duration
			for range len(busy) + len(tt.want) {
				if _, err := c.Read(make([]byte, most)); err != nil {
					t.Error(err)
				}
				got = append(got, time.Since(s.began))
			}
			want := slices.Concat([]time.Duration{0, ms, 2 * ms, 3 * ms, 4 * ms, 5 * ms}, tt.want)
			if !slices.Equal(got, want) {
				t.Errorf("%s: read after %s, want %s", tt.name, got, want)
			}
		})
	}
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
